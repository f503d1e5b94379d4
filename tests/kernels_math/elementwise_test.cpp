#include "kernels/cpu/math/elementwise.hpp"

#include "support.hpp"

namespace terrace::math {
namespace {
using namespace test;

/// A kernel of two inputs and what it should give.
struct Binary {
  const char* name;
  void (*kernel)(const float*, const float*, float*, std::int64_t);
  double (*oracle)(double, double);
};

const std::vector<Binary> kKernels = {
    {"add", add, [](double a, double b) { return a + b; }},
    {"add_relu", add_relu, [](double a, double b) { return std::max(a + b, 0.0); }},
    {"relu_backward", relu_backward, [](double dy, double y) { return y > 0 ? dy : 0; }},
    {"scale", [](const float* a, const float*, float* out, std::int64_t n) { scale(a, 0.75f, out, n); },
     [](double a, double) { return 0.75 * a; }},
    {"running_average",
     [](const float* a, const float* b, float* out, std::int64_t n) {
       if (out != a) std::copy_n(a, n, out);
       running_average(out, b, 0.125f, n);
     },
     [](double a, double b) { return 0.875 * a + 0.125 * b; }},
};

Floats apply(const Binary& kernel, const Floats& a, const Floats& b) {
  Floats out(a.size(), -7);
  kernel.kernel(a.data(), b.data(), out.data(), std::ssize(a));
  return out;
}

TEST(Elementwise, MatchesTheOracle) {
  at_each_level([] {
    for (const Binary& kernel : kKernels) {
      SCOPED_TRACE(kernel.name);
      for (const std::int64_t n : kSizes) {
        const Floats a = random_floats(n, 1), b = random_floats(n, 2);
        Doubles want(a.size());
        for (std::size_t i = 0; i < a.size(); ++i) want[i] = kernel.oracle(a[i], b[i]);
        EXPECT_TRUE(all_near(apply(kernel, a, b), want, 2e-7));
      }
    }
  });
}

TEST(Elementwise, InPlaceGivesTheSameBits) {
  at_each_level([] {
    for (const Binary& kernel : kKernels) {
      SCOPED_TRACE(kernel.name);
      for (const std::int64_t n : kSizes) {
        Floats a = random_floats(n, 3);
        const Floats b = random_floats(n, 4), expected = apply(kernel, a, b);
        kernel.kernel(a.data(), b.data(), a.data(), n);
        EXPECT_TRUE(same_bits(a, expected));
      }
    }
  });
}

TEST(Elementwise, WritesOverTheSecondInputToo) {
  for (const std::size_t chosen : {0u, 1u, 2u}) {
    const Floats a = random_floats(1000, 5);
    Floats b = random_floats(1000, 6);
    const Floats expected = apply(kKernels[chosen], a, b);
    kKernels[chosen].kernel(a.data(), b.data(), b.data(), 1000);
    EXPECT_TRUE(same_bits(b, expected)) << kKernels[chosen].name;
  }
}

TEST(Elementwise, DoesNotDependOnTheNumberOfThreads) {
  const Floats a = random_floats(70001, 7), b = random_floats(70001, 8);
  for (const Binary& kernel : kKernels) {
    SCOPED_TRACE(kernel.name);
    expect_independent_of_threads([&] { return apply(kernel, a, b); });
  }
}

TEST(Elementwise, ReluLetsNaNThrough) {
  const Floats a(40, std::numeric_limits<float>::quiet_NaN()), b(40, 1);
  for (const float value : apply(kKernels[1], a, b)) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace terrace::math

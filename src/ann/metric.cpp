// SPDX-License-Identifier: Apache-2.0
#include "ann/metric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

#if defined(__x86_64__)
// GCC 12 warns of lanes that its own headers leave undefined on purpose (its bug 105593).
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#endif

namespace terrace::ann {
namespace {

float l2_scalar(const float* a, const float* b, std::size_t dimension) {
  float sum = 0;
  for (std::size_t i = 0; i < dimension; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

float dot_scalar(const float* a, const float* b, std::size_t dimension) {
  float sum = 0;
  for (std::size_t i = 0; i < dimension; ++i) sum += a[i] * b[i];
  return sum;
}

#if defined(__x86_64__)
#define TERRACE_AVX2 [[gnu::target("avx2,fma")]]
#define TERRACE_AVX512 [[gnu::target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]]

// One step of a sum: what two vectors' lanes add to it.
struct SquaredDifference {
  TERRACE_AVX2 static __m256 add(__m256 sum, __m256 a, __m256 b) {
    const __m256 d = _mm256_sub_ps(a, b);
    return _mm256_fmadd_ps(d, d, sum);
  }
  TERRACE_AVX512 static __m512 add(__m512 sum, __m512 a, __m512 b) {
    const __m512 d = _mm512_sub_ps(a, b);
    return _mm512_fmadd_ps(d, d, sum);
  }
  static constexpr auto scalar = l2_scalar;
};

struct Product {
  TERRACE_AVX2 static __m256 add(__m256 sum, __m256 a, __m256 b) { return _mm256_fmadd_ps(a, b, sum); }
  TERRACE_AVX512 static __m512 add(__m512 sum, __m512 a, __m512 b) { return _mm512_fmadd_ps(a, b, sum); }
  static constexpr auto scalar = dot_scalar;
};

TERRACE_AVX2 float sum_of(__m256 lanes) {
  __m128 low = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
  low = _mm_add_ps(low, _mm_movehl_ps(low, low));
  return _mm_cvtss_f32(_mm_add_ss(low, _mm_shuffle_ps(low, low, 1)));
}

// Four sums at once keep the multipliers busy while each waits for its own last addition.
template <class Step>
TERRACE_AVX2 float sum_avx2(const float* a, const float* b, std::size_t dimension) {
  __m256 sums[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
  std::size_t i = 0;
  for (; i + 32 <= dimension; i += 32) {
    for (std::size_t lane = 0; lane < 4; ++lane)
      sums[lane] =
          Step::add(sums[lane], _mm256_loadu_ps(a + i + 8 * lane), _mm256_loadu_ps(b + i + 8 * lane));
  }
  for (; i + 8 <= dimension; i += 8)
    sums[0] = Step::add(sums[0], _mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i));
  const __m256 all = _mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3]));
  return sum_of(all) + Step::scalar(a + i, b + i, dimension - i);
}

template <class Step>
TERRACE_AVX512 float sum_avx512(const float* a, const float* b, std::size_t dimension) {
  __m512 sums[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
  std::size_t i = 0;
  for (; i + 64 <= dimension; i += 64) {
    for (std::size_t lane = 0; lane < 4; ++lane)
      sums[lane] =
          Step::add(sums[lane], _mm512_loadu_ps(a + i + 16 * lane), _mm512_loadu_ps(b + i + 16 * lane));
  }
  for (; i + 16 <= dimension; i += 16)
    sums[0] = Step::add(sums[0], _mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i));
  if (i < dimension) {
    const auto rest = static_cast<__mmask16>((1U << (dimension - i)) - 1);
    sums[1] = Step::add(sums[1], _mm512_maskz_loadu_ps(rest, a + i), _mm512_maskz_loadu_ps(rest, b + i));
  }
  const __m512 all = _mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3]));
  return sum_of(_mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1)));
}

TERRACE_AVX2 float l2_avx2(const float* a, const float* b, std::size_t n) {
  return sum_avx2<SquaredDifference>(a, b, n);
}
TERRACE_AVX512 float l2_avx512(const float* a, const float* b, std::size_t n) {
  return sum_avx512<SquaredDifference>(a, b, n);
}
TERRACE_AVX2 float dot_avx2(const float* a, const float* b, std::size_t n) {
  return sum_avx2<Product>(a, b, n);
}
TERRACE_AVX512 float dot_avx512(const float* a, const float* b, std::size_t n) {
  return sum_avx512<Product>(a, b, n);
}
#undef TERRACE_AVX2
#undef TERRACE_AVX512
#else
constexpr auto l2_avx2 = l2_scalar, l2_avx512 = l2_scalar;
constexpr auto dot_avx2 = dot_scalar, dot_avx512 = dot_scalar;
#endif

template <DistanceFunction Dot>
float inner_product(const float* a, const float* b, std::size_t n) {
  return -Dot(a, b, n);
}
template <DistanceFunction Dot>
float cosine(const float* a, const float* b, std::size_t n) {
  return 1 - Dot(a, b, n);
}

template <DistanceFunction L2, DistanceFunction Dot>
DistanceFunction of_metric(Metric metric) {
  switch (metric) {
    case Metric::l2:
      return L2;
    case Metric::inner_product:
      return inner_product<Dot>;
    case Metric::cosine:
      break;
  }
  return cosine<Dot>;
}

double dot_exact(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

}  // namespace

std::string_view to_string(Metric metric) {
  switch (metric) {
    case Metric::l2:
      return "l2";
    case Metric::inner_product:
      return "ip";
    case Metric::cosine:
      break;
  }
  return "cosine";
}

Result<Metric> parse_metric(std::string_view name) {
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine})
    if (to_string(metric) == name) return metric;
  return Error{ErrorCode::invalid_argument,
               fmt::format("there is no metric '{}': choose l2, ip or cosine", name)};
}

Level best_level() {
  static const Level best = [] {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
      return Level::avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Level::avx2;
#endif
    return Level::scalar;
  }();
  return best;
}

DistanceFunction distance_function(Metric metric, Level level) {
  check(level <= best_level(), "this processor lacks the level of the distance");
  switch (level) {
    case Level::avx512:
      return of_metric<l2_avx512, dot_avx512>(metric);
    case Level::avx2:
      return of_metric<l2_avx2, dot_avx2>(metric);
    case Level::scalar:
      break;
  }
  return of_metric<l2_scalar, dot_scalar>(metric);
}

double exact_distance(Metric metric, std::span<const float> a, std::span<const float> b) {
  check(a.size() == b.size(), "a distance is between vectors of one dimension");
  if (metric == Metric::inner_product) return -dot_exact(a, b);
  if (metric == Metric::l2) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      sum += (double{a[i]} - double{b[i]}) * (double{a[i]} - double{b[i]});
    return sum;
  }
  const double length_a = std::sqrt(dot_exact(a, a)), length_b = std::sqrt(dot_exact(b, b));
  if (length_a == 0 || length_b == 0) return 1;
  // Scaled before they are multiplied: vectors of one direction then have the product one, whatever their
  // length.
  double product = 0;
  for (std::size_t i = 0; i < a.size(); ++i) product += double{a[i]} / length_a * (double{b[i]} / length_b);
  return std::max(0.0, 1 - product);
}

}  // namespace terrace::ann

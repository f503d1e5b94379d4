// Which data does a program use, how often, and where? This counts the accesses of an iterative solver, which
// uses nothing else of this library.
#include <cstdio>
#include <terrace/access_profile.hpp>
#include <terrace/page_memory.hpp>

namespace {

using namespace terrace::literals;
constexpr std::size_t kRows = 1024;

struct System {
  terrace::PageMemory matrix{kRows * kRows * 8_B}, right{kRows * 8_B}, guess{kRows * 8_B}, next{kRows * 8_B};
};

void set_up(System& system) {
  const auto matrix = system.matrix.as<double>(), right = system.right.as<double>();
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = i % (kRows + 1) == 0 ? 2.0 * kRows : 1.0;
  for (double& value : right) value = 1;
}

/// One step of Jacobi's method.
void improve(System& system) {
  const auto matrix = system.matrix.as<double>(), right = system.right.as<double>();
  const auto guess = system.guess.as<double>(), next = system.next.as<double>();
  for (std::size_t row = 0; row < kRows; ++row) {
    double sum = right[row];
    for (std::size_t column = 0; column < kRows; ++column) {
      if (column != row) sum -= matrix[row * kRows + column] * guess[column];
    }
    next[row] = sum / matrix[row * kRows + row];
  }
}

void take_over(System& system) {
  const auto guess = system.guess.as<double>(), next = system.next.as<double>();
  for (std::size_t row = 0; row < kRows; ++row) guess[row] = next[row];
}

void print(const terrace::AccessProfile& profile) {
  std::printf("%-8s %8s", "pages", "");
  for (const std::string& layer : profile.layers) std::printf(" %18s", layer.c_str());
  std::printf("\n");
  for (const terrace::AreaProfile& area : profile.areas) {
    std::printf("%-8s %8llu", area.name.c_str(), static_cast<unsigned long long>(area.pages));
    for (const terrace::PageCount& count : area.layers) {
      std::printf("  %6llu r %6llu w", static_cast<unsigned long long>(count.reads),
                  static_cast<unsigned long long>(count.writes));
    }
    std::printf("\n");
  }
}

}  // namespace

int main() try {
  System system;
  terrace::AccessProfiler profiler = terrace::start_profile().value();
  const auto matrix = profiler.add_area("matrix", system.matrix.pages());
  const auto right = profiler.add_area("right", system.right.pages());
  const auto guess = profiler.add_area("guess", system.guess.pages());
  const auto next = profiler.add_area("next", system.next.pages());
  set_up(system);
  profiler.add_layer("improve");
  improve(system);
  profiler.add_layer("take over");
  take_over(system);
  const terrace::AccessProfile profile = profiler.end_profile();
  print(profile);
  return profile.areas[0].layers[1].reads == profile.areas[0].pages ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

// Sweeps over data four times larger than its fast tier, with a disk tier behind it, and reports what was
// moved and what that cost.
//
//   larger_than_memory [FAST-SPEC SLOW-SPEC]
#include <cstdio>
#include <string>
#include <terrace/terrace.hpp>

namespace {
using Clock = std::chrono::steady_clock;

constexpr std::size_t kArrays = 64, kElements = 4 << 20;  // 64 arrays of 16 MiB: 1 GiB

// readme: begin
// One sweep of y = a * y + x over all arrays, in order. Hints run a little ahead of the work.
void sweep(std::vector<terrace::array<float>>& arrays, float factor) {
  constexpr std::size_t kAhead = 3;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    for (std::size_t next = i; next < std::min(i + kAhead, arrays.size()); ++next) arrays[next].will_write();
    auto view = arrays[i].write();
    for (float& element : view) element = factor * element + static_cast<float>(i);
    arrays[i].archive();
  }
}
// readme: end
void report(const terrace::ManagerStatistics& statistics, terrace::Seconds took) {
  const auto& out = statistics.links[0][1];
  const auto& in = statistics.links[1][0];
  std::printf("  fast memory used at most    %12s\n", readable(statistics.tiers[0].peak).c_str());
  std::printf("  moved to slow memory        %12s   at %s\n", readable(out.bytes).c_str(),
              readable(out.bandwidth()).c_str());
  std::printf("  moved back                  %12s   at %s\n", readable(in.bytes).c_str(),
              readable(in.bandwidth()).c_str());
  std::printf("  buffers beyond the tiers    %12s\n", readable(statistics.buffers).c_str());
  std::printf("  time                        %10.2f s\n", took.count());
  std::printf("  of which waiting for data   %10.2f s\n", statistics.waited.count());
}

int run(const std::string& fast, const std::string& slow) {
  terrace::Manager manager({fast, slow}, "async-LMP");
  std::printf("Sweeping three times over %s of data with %s in front of %s\n",
              readable(terrace::Bytes{kArrays * kElements * sizeof(float)}).c_str(), fast.c_str(),
              slow.c_str());
  const Clock::time_point began = Clock::now();
  std::vector<terrace::array<float>> arrays;
  for (std::size_t i = 0; i < kArrays; ++i) {
    arrays.emplace_back(manager, kElements, 1.f);
    arrays.back().archive();
  }
  for (int step = 0; step < 3; ++step) sweep(arrays, 0.5f);
  report(manager.statistics(), Clock::now() - began);

  for (std::size_t i = 0; i < kArrays; ++i) {
    const float expected = 0.125f + 1.75f * static_cast<float>(i);
    const auto view = arrays[i].read();
    if (std::any_of(view.begin(), view.end(), [&](float element) { return element != expected; }))
      throw std::runtime_error("array " + std::to_string(i) + " is wrong");
  }
  std::printf("All %zu arrays hold exactly what they should.\n", kArrays);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 1) return run("dram:256MiB,huge", "file:terrace.spill:2GiB");
  if (argc == 3) return run(argv[1], argv[2]);
  std::fprintf(stderr, "usage: %s [FAST-SPEC SLOW-SPEC]\n", argv[0]);
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

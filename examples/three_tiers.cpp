// Three tiers: fast memory, slower memory and a disk. Data is evicted as far down as necessary and fetched
// when it is used.
//
//   three_tiers [FILE-FOR-THE-DISK-TIER]
#include <cstdio>
#include <numeric>
#include <string>
#include <terrace/terrace.hpp>

namespace {

constexpr std::size_t kArrays = 40, kElements = 1 << 20;  // 40 arrays of 4 MiB

void print_places(const terrace::Manager& manager, const std::vector<terrace::array<int>>& arrays,
                  const char* when) {
  std::printf("%-28s", when);
  for (const auto& array : arrays) std::printf("%u", manager.where(array.object()).index);
  std::printf("\n");
}

int run(const std::string& path) {
  terrace::Manager manager(
      {"dram:32MiB", "emulated:64MiB,read=4GB/s,write=2GB/s,latency=300ns", "file:" + path + ":256MiB"},
      "LMP");
  std::vector<terrace::array<int>> arrays;
  for (std::size_t i = 0; i < kArrays; ++i) arrays.emplace_back(manager, kElements, static_cast<int>(i));
  print_places(manager, arrays, "the tier of each array:");

  for (std::size_t i = 0; i < kArrays; i += 8) {
    arrays[i].will_read();
    const auto view = arrays[i].read();
    if (std::accumulate(view.begin(), view.end(), 0L) != static_cast<long>(i * kElements)) return 1;
  }
  print_places(manager, arrays, "after reading every eighth:");

  const terrace::ManagerStatistics statistics = manager.statistics();
  for (std::uint32_t from = 0; from < manager.tiers(); ++from) {
    for (std::uint32_t to = 0; to < manager.tiers(); ++to) {
      const terrace::LinkStatistics& link = statistics.links[from][to];
      if (link.bytes.count == 0) continue;
      std::printf("  tier %u to %u: %10s at %s\n", from, to, readable(link.bytes).c_str(),
                  readable(link.bandwidth()).c_str());
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  return run(argc > 1 ? argv[1] : "terrace.spill");
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

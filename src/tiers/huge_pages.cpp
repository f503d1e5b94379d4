#include "tiers/huge_pages.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif

namespace terrace {
namespace {

constexpr int kTwoMiBPages = MAP_HUGETLB | (21 << MAP_HUGE_SHIFT);

// Returns how much of the mapping the kernel backs with huge pages, according to /proc/self/smaps.
Bytes huge_bytes(const Mapping& mapping) {
  const auto first = reinterpret_cast<std::uintptr_t>(mapping.data()), last = first + mapping.size();
  std::ifstream areas("/proc/self/smaps");
  bool inside = false;
  Bytes sum;
  for (std::string line; std::getline(areas, line);) {
    unsigned long start = 0, end = 0, kib = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &start, &end) == 2) inside = start < last && end > first;
    if (inside && std::sscanf(line.c_str(), "AnonHugePages: %lu kB", &kib) == 1) sum += Bytes{kib << 10};
  }
  return sum;
}

std::string transparent_setting() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string text;
  std::getline(file, text);
  const std::size_t open = text.find('['), close = text.find(']');
  return open < close && close != text.npos ? text.substr(open + 1, close - open - 1) : "missing";
}

}  // namespace

std::optional<Mapping> map_reserved_huge_pages(Bytes size) {
  const std::size_t bytes = round_up(size, kHugePage).count;
  void* const start =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | kTwoMiBPages, -1, 0);
  if (start == MAP_FAILED) return std::nullopt;
  return Mapping(start, bytes);
}

void ask_for_huge_pages(const Mapping& mapping) {
  // A refusal is not an error; huge_page_note() reports it.
  static_cast<void>(madvise(mapping.data(), mapping.size(), MADV_HUGEPAGE));
}

std::string huge_page_note(const Mapping& mapping) {
  const Bytes got = huge_bytes(mapping), asked = round_down(Bytes{mapping.size()}, kHugePage);
  if (got >= asked) return {};
  const std::string setting = transparent_setting();
  const std::string advice =
      setting == "always" || setting == "madvise"
          ? "memory is fragmented; reserve them early with vm.nr_hugepages"
          : fmt::format(
                "transparent huge pages are '{}'; set them to 'madvise' or reserve some with "
                "vm.nr_hugepages",
                setting);
  return fmt::format("huge pages for {} of {} only: {}", readable(got), readable(asked), advice);
}

}  // namespace terrace

#include "tiers/mapping.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>
#include <vector>

#include "terrace/error.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace terrace {
namespace {

constexpr std::size_t kSlice = 32u << 20;

void touch(std::span<std::byte> memory) {
  // Each page is touched by writing back its own contents, which preserves a kept file.
  const std::size_t page = page_size().count;
  for (std::size_t i = 0; i < memory.size(); i += page) {
    volatile std::byte* first = &memory[i];
    *first = *first;
  }
}

// Returns 0 or an errno.
int populate_slice(std::span<std::byte> memory) {
  if (madvise(memory.data(), memory.size(), MADV_POPULATE_WRITE) == 0) return 0;
  if (errno != EINVAL) return errno;
  touch(memory);  // for kernels before 5.14, which lack MADV_POPULATE_WRITE
  return 0;
}

unsigned helpers(std::size_t slices) {
  const std::size_t cores = std::clamp(std::thread::hardware_concurrency(), 1u, 16u);
  return static_cast<unsigned>(std::min(cores, slices));
}

}  // namespace

Bytes page_size() { return {static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))}; }

Mapping::~Mapping() {
  if (start_) munmap(start_, bytes_);
}

Mapping map_anonymous(Bytes size, const std::string& name) {
  // More than needed is mapped, and then all but the aligned part is unmapped.
  const std::size_t wanted = round_up(size, page_size()).count, spare = wanted + kHugePage.count;
  void* const whole =
      mmap(nullptr, spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (whole == MAP_FAILED) {
    const int cause = errno;
    throw EnvironmentError(
        fmt::format("the system refused {} of address space for {} ({}): raise `ulimit -v` "
                    "or ask for less",
                    readable(size), name, std::strerror(cause)),
        {name, {}, 0, cause});
  }
  auto* const start = static_cast<std::byte*>(whole);
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(start) % kHugePage.count;
  if (head > 0) munmap(start, head);
  munmap(start + head + wanted, spare - head - wanted);
  return {start + head, wanted};
}

void populate(const Mapping& mapping, const std::string& name) {
  const std::size_t slices = (mapping.size() + kSlice - 1) / kSlice;
  std::atomic<std::size_t> next = 0;
  std::atomic<int> cause = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < slices && cause == 0; i = next++) {
      const std::size_t start = i * kSlice;
      const int failed =
          populate_slice(mapping.bytes().subspan(start, std::min(kSlice, mapping.size() - start)));
      if (failed != 0) cause = failed;
    }
  };
  std::vector<std::jthread> others;
  try {
    for (unsigned i = 1; i < helpers(slices); ++i) others.emplace_back(work);
  } catch (const std::system_error&) {
    // Where the system refuses a thread, fewer threads do the same work.
  }
  work();
  others.clear();
  if (cause == 0) return;
  throw EnvironmentError(fmt::format("the system ran out of memory while giving {} to {} ({}): ask for less",
                                     readable(Bytes{mapping.size()}), name, std::strerror(cause)),
                         {name, {}, 0, cause});
}

}  // namespace terrace

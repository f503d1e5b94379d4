// SPDX-License-Identifier: Apache-2.0
// PagedMemory is a plain pointer to more memory than fast memory holds.
//
// Pages that do not fit are on a slower tier and come back when they are touched, by any thread, in a system
// call too. It needs Linux's userfaultfd (`terrace doctor` tells). Pages are managed by parts of 64 KiB.
//
//   auto memory = PagedMemory::create(64_GiB, {.fast = 8_GiB, .slow = {"file:/data:64GiB"}}).value();
//   std::span<float> numbers = memory.as<float>();
//
// It is move-only, owns its threads and its memory, and must outlive every use of the pointer. A page that a
// slower tier cannot give back ends whoever touches it with SIGBUS; failure() says which.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "terrace/bytes.hpp"
#include "terrace/result.hpp"
#include "terrace/tier.hpp"

namespace terrace {
namespace pages {
class Store;
}

struct PagedMemoryOptions {
  Bytes fast;                     ///< the most that may be resident
  std::vector<std::string> slow;  ///< specs of slower tiers, the faster ones first
  std::string policy = "keeper";  ///< see paged_memory_policies()
  double overhead = 0.05;         ///< share of the time that `keeper` may spend on finding out what is hot
  Seconds interval{1};            ///< in which it looks at all memory once
  unsigned workers = 4;           ///< threads that answer faults; one fewer can read at once. At least 2
};

struct PagedMemoryStatistics {
  Bytes resident, limit, stored;
  std::uint64_t faults = 0;   ///< all of the following
  std::uint64_t zeroed = 0;   ///< first touches
  std::uint64_t opened = 0;   ///< first writes to a part that a slower tier had too
  std::uint64_t fetches = 0;  ///< a slower tier was read
  std::uint64_t rescues = 0;  ///< the part was on its way out and came back without being read
  Bytes read, read_ahead, written;
  Bytes promoted;                      ///< read before somebody asked, because it was hot
  Bytes demoted;                       ///< moved from one slower tier to a lower one
  std::uint64_t samples = 0;           ///< parts taken out to see whether they are in use
  std::uint64_t intervals = 0;         ///< that have been sampled
  Seconds profiling{0};                ///< what samples took, from everybody
  double largest_profiling_share = 0;  ///< of an interval
  Bytes left_clean, left_zero;         ///< left fast memory without being written
  std::uint64_t waited_for_room = 0;
  Seconds waiting{0}, longest_wait{0};
  bool no_room_below = false;  ///< slower tiers are full: parts stay resident beyond the limit
};

class PagedMemory {
 public:
  /// Fails with one sentence where userfaultfd is refused, a spec or a policy is wrong, or `fast` is less
  /// than 1 MiB.
  static Result<PagedMemory> create(Bytes size, const PagedMemoryOptions& options);
  /// The same on open tiers, which outlive it.
  static Result<PagedMemory> create(Bytes size, const PagedMemoryOptions& options,
                                    std::span<Tier* const> slow);
  PagedMemory(PagedMemory&&) noexcept;
  PagedMemory& operator=(PagedMemory&&) noexcept;
  ~PagedMemory();

  std::byte* data() const noexcept;
  Bytes size() const noexcept;
  template <class T>
  std::span<T> as() const noexcept {
    return {reinterpret_cast<T*>(data()), size().count / sizeof(T)};
  }

  /// Gives these bytes up: whole pages of them read as zeros afterwards. pre: within size()
  void discard(std::size_t offset, Bytes bytes);

  /// Says that these bytes are wanted soon, or not: `keeper` and `async-lmp` then fetch them where there is
  /// room, or have them leave first. pre: within size()
  void will_need(std::size_t offset, Bytes bytes);
  void archive(std::size_t offset, Bytes bytes);

  PagedMemoryStatistics statistics() const;
  /// Returns how hot `keeper` found the memory at an offset, from 0 to 1; less than 0 where it does not know.
  double hotness(std::size_t offset) const;
  /// Returns what was lost, as one sentence with tier, path and offset; empty where nothing was.
  std::string failure() const;

 private:
  struct State;
  explicit PagedMemory(std::unique_ptr<State> state);
  static Result<PagedMemory> create(Bytes size, const PagedMemoryOptions& options,
                                    std::vector<std::unique_ptr<pages::Store>> stores);
  std::unique_ptr<State> state_;
};

std::vector<std::string_view> paged_memory_policies();

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// PageWatch: counts which pages are read and written, by protecting them and taking the faults (000 section
// 3.1, at user level).
//
//   area      whole pages of readable and writable memory that belong to one tensor
//   armed     protected: the next access faults, is counted, and opens the page: a read for reading, a write
//             for both. So after a read the first write is seen, after a write no read is. An instruction
//             that reads and writes at once counts as a write
//   window    how many bytes of pages may be open at once; beyond it the longest open are armed again. Pages
//             are counted as a cache of that size would miss them, first in first out: repeated sweeps over
//             an area larger than the window are all seen, those over a smaller one are one. No clock takes
//             part, so counts do not depend on speed
//
// What does not fault is not seen: the kernel's own accesses. A system call that is given an armed page fails
// with EFAULT instead; so does I/O in the background. A thread that blocks SIGSEGV must not touch an area:
// the system ends the process. Nor may a child process made by fork. All functions are thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "profile/access/fault_hook.hpp"
#include "terrace/bytes.hpp"

namespace terrace {

/// In pages. One page is counted once each time it was armed, for reading, for writing, or for both.
struct PageAccesses {
  std::uint64_t reads = 0, writes = 0;
  bool complete = true;  ///< false: the system refused to protect some of it, there were more
  bool operator==(const PageAccesses&) const = default;
};

class PageWatch final : private FaultSink {
 public:
  /// Window zero: the size of the last cache. It is never below what the threads of this computer may need
  /// open at once to get on. Fails where FaultHook does.
  static Result<std::unique_ptr<PageWatch>> start(Bytes window = {});
  PageWatch(const PageWatch&) = delete;
  PageWatch& operator=(const PageWatch&) = delete;
  /// Opens all areas. pre: no other thread uses them meanwhile
  ~PageWatch();

  Bytes window() const;

  /// Arms an area. Its first byte names it from here on. `pages_per_fault`: as many are opened and counted
  /// together, which is coarser and cheaper. pre: whole pages, at least one, in no other area
  void add(std::span<std::byte> area, std::size_t pages_per_fault = 1);
  /// Returns what was counted since it was added or last taken.
  PageAccesses take(const std::byte* area);
  /// Opens it and ends its part; what was not taken is returned. pre: no other thread uses it meanwhile
  PageAccesses remove(const std::byte* area);
  /// Arms every page of all areas.
  void arm();

 private:
  enum class State : std::uint8_t { armed, readable, writable };
  struct Area {
    std::byte* begin;
    std::size_t pages, pages_per_unit;
    std::vector<State> units;  ///< runs of pages that are opened together
    PageAccesses counts;
  };
  struct Opened {
    Area* area;
    std::size_t unit;
  };
  class Lock;

  explicit PageWatch(Bytes window);
  bool on_fault(const std::byte* address, Access access) noexcept override;
  Area* find(const std::byte* address) const;
  std::vector<std::unique_ptr<Area>>::const_iterator place(const std::byte* area) const;
  static std::size_t pages_of(const Area& area, std::size_t unit);
  static bool protect(Area& area, std::size_t first, std::size_t count, State state);
  static bool give_up(Area& area);
  static void arm(Area& area);
  static void open(Area& area);
  void remember(Area& area, std::size_t unit);
  void make_room(std::size_t pages);
  void arm_again(std::span<Opened> units);
  void forget(const Area& area);
  void reserve(std::size_t units);

  const std::size_t least_units_;  // open at once, so that every thread gets on
  const std::size_t window_pages_;
  std::mutex changing_;                       // held by who changes the set of areas, never by a handler
  std::atomic_flag busy_;                     // guards what follows; see Lock
  std::vector<std::unique_ptr<Area>> areas_;  // in the order of addresses
  std::vector<Opened> ring_, leaving_;        // room for every unit of all areas: nothing grows in a handler
  std::size_t oldest_ = 0, open_units_ = 0, open_pages_ = 0;
  std::optional<FaultHook> hook_;
};

}  // namespace terrace

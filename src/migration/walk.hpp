// SPDX-License-Identifier: Apache-2.0
// Where a writer stands that walks the kernels of a step with an estimated clock: the time, the links, and
// how much of fast memory is taken now and planned to be taken later.
//
// Plans themselves are for the writers; this is what those that move tensors ahead of their use share.
// Tensors on their way out keep their room until they are gone, and may be called back before that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "migration/busy_links.hpp"
#include "migration/occupancy.hpp"

namespace terrace::migration {

/// Something on its way out of fast memory that still has its room there.
struct Departure {
  std::uint32_t what = 0;              ///< which tensor or unit, in the writer's own numbers
  std::vector<std::uint32_t> tickets;  ///< of its transfers; none: it just goes
  Seconds end{0};                      ///< when they are done
  std::uint32_t late = 0;              ///< the first kernel at which it is expected to be gone
};

class Walk {
 public:
  /// Borrows the machine. `begin`: when each kernel would begin if nothing ever waited, the step's end last.
  Walk(const Machine& machine, std::vector<Seconds> begin, Bytes capacity)
      : links(machine), capacity_(static_cast<std::int64_t>(capacity.count)), begin_(std::move(begin)) {}

  BusyLinks links;
  Seconds now{0};
  std::int64_t used = 0;            ///< bytes of fast memory that are taken now
  std::deque<Departure> departing;  ///< in the order in which they are waited for

  bool has_room(std::int64_t bytes) const { return used + bytes <= capacity_; }
  /// Returns when the kernel would begin if nothing waited from `from`, which runs next, until then.
  Seconds expected(std::uint32_t from, std::uint32_t kernel) const {
    return now + (begin_[kernel] - begin_[from]);
  }
  /// Returns the first kernel that is expected to begin at that time or after it; `from` runs next.
  std::uint32_t kernel_at(Seconds time, std::uint32_t from) const {
    const Seconds unhindered = begin_[from] + (time - now);
    const auto found = std::lower_bound(begin_.begin() + from, begin_.end(), unhindered);
    return static_cast<std::uint32_t>(
        std::min<std::ptrdiff_t>(found - begin_.begin(), static_cast<std::ptrdiff_t>(begin_.size()) - 1));
  }

  /// Books the room of what leaves until it is expected to be gone. `next_kernel` runs next.
  void book(Departure& departure, std::int64_t size, std::uint32_t next_kernel, PlannedOccupancy& planned) {
    departure.late = departure.tickets.empty() ? next_kernel : kernel_at(departure.end, next_kernel);
    if (departure.late > next_kernel) planned.add(next_kernel, departure.late - 1, size);
  }
  /// Gives back the rest of that room when what left is gone before `next_kernel`.
  void give_up(const Departure& departure, std::int64_t size, std::uint32_t next_kernel,
               PlannedOccupancy& planned) {
    if (!departure.tickets.empty()) now = std::max(now, departure.end);
    if (departure.late > next_kernel) planned.add(next_kernel, departure.late - 1, -size);
  }
  /// Books the room of what stays after all, from where it was expected to be gone until its next use.
  /// Returns whether there is room for it; else nothing changes.
  bool call_back(const Departure& departure, std::int64_t size, std::uint32_t kernel, std::uint32_t next_use,
                 PlannedOccupancy& planned) const {
    const std::uint32_t from = std::max(kernel, departure.late);
    if (from >= next_use) return true;
    if (planned.most(from, next_use - 1) + size > capacity_) return false;
    planned.add(from, next_use - 1, size);
    return true;
  }
  /// Returns whether the kernels until `next_use` have the room they need if so much is fetched now;
  /// `missing` is what the next kernel still has to make.
  bool can_fetch(std::int64_t size, std::uint32_t kernel, std::uint32_t next_use, std::int64_t missing,
                 const PlannedOccupancy& planned) const {
    const std::int64_t before = next_use > kernel ? planned.most(kernel, next_use - 1) : 0;
    return before + size <= capacity_ && has_room(missing + size);
  }

 private:
  std::int64_t capacity_;
  std::vector<Seconds> begin_;
};

}  // namespace terrace::migration

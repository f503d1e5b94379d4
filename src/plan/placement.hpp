// SPDX-License-Identifier: Apache-2.0
// Shelf: the items placed so far, and the search for a place for the next. The part of packing where the time
// goes. Sizes and offsets are in units of the alignment. One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/time_away.hpp"

namespace terrace {

/// An item with its size in units.
struct Box {
  std::uint64_t size;  ///< > 0
  std::uint32_t first;
  std::uint32_t last;
  TimeAway away{};

  bool meets(const Box& other) const noexcept {
    return first <= other.last && other.first <= last && !away.covers(other.first, other.last) &&
           !other.away.covers(first, last);
  }
};

/// Which of the gaps that are large enough.
enum class Fit { lowest, tightest };

class Shelf {
 public:
  /// Places it clear of all boxes that are live with it, and returns its offset.
  std::uint64_t place(const Box& box, Fit fit);
  /// Places it at that offset, unseen. pre: no box there is live with it
  void put(const Box& box, std::uint64_t offset);
  /// Returns where the highest box ends.
  std::uint64_t top() const noexcept { return top_; }
  /// Returns how many boxes were looked at or put, over all calls.
  std::uint64_t looks() const noexcept { return looks_; }
  void clear();

 private:
  struct Placed {
    std::uint64_t begin, end;
    std::uint32_t first, last;
    TimeAway away;
  };
  // Short lists one after the other: inserting into one long list would take longer than searching it.
  using Row = std::vector<Placed>;

  template <bool kSomeAway>
  static std::uint64_t live_mask(const Placed& placed, const Box& box);
  template <bool kSomeAway>
  std::uint64_t lowest_gap(const Box& box);
  template <bool kSomeAway>
  std::uint64_t tightest_gap(const Box& box);

  std::vector<Row> rows_;   // by begin, within and across; none is empty
  bool some_away_ = false;  // a box that was placed has an absence
  std::uint64_t top_ = 0;
  std::uint64_t looks_ = 0;
};

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// A heap that is too simple to be wrong: one owner per granule, searched from end to end. It follows the
// rules of terrace/heap.hpp (best fit, lowest offset among equals), so offsets must be identical.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace terrace::testing {

class OracleHeap {
 public:
  OracleHeap(std::uint64_t capacity, std::uint64_t granularity)
      : granularity_(granularity), granules_(capacity / granularity) {}

  /// Offset of the block, or nothing. `name` > 0 marks its granules.
  std::optional<std::uint64_t> allocate(std::uint64_t size, std::uint64_t alignment, std::uint32_t name) {
    const std::uint64_t length = (size + granularity_ - 1) / granularity_;
    const std::uint64_t step = alignment <= granularity_ ? 1 : alignment / granularity_;
    std::optional<std::uint64_t> best;
    std::uint64_t best_hole = ~std::uint64_t{0};
    each_hole([&](std::uint64_t begin, std::uint64_t end) {
      const std::uint64_t place = (begin + step - 1) / step * step;
      if (place + length > end || end - begin >= best_hole) return;
      best = place;
      best_hole = end - begin;
    });
    if (!best) return std::nullopt;
    for (std::uint64_t i = *best; i < *best + length; ++i) granules_[i] = name;
    return *best * granularity_;
  }

  void free(std::uint32_t name) {
    for (std::uint32_t& granule : granules_) {
      if (granule == name) granule = 0;
    }
  }

  /// Moves the block's granules as compact would.
  void move(std::uint32_t name, std::uint64_t to) {
    std::uint64_t length = 0;
    for (const std::uint32_t granule : granules_) length += granule == name;
    free(name);
    for (std::uint64_t i = 0; i < length; ++i) granules_[to / granularity_ + i] = name;
  }

  std::uint64_t largest_hole() const {
    std::uint64_t largest = 0;
    each_hole([&](std::uint64_t begin, std::uint64_t end) { largest = std::max(largest, end - begin); });
    return largest * granularity_;
  }
  std::uint64_t holes() const {
    std::uint64_t count = 0;
    each_hole([&](std::uint64_t, std::uint64_t) { ++count; });
    return count;
  }
  std::uint64_t used() const {
    std::uint64_t count = 0;
    for (const std::uint32_t granule : granules_) count += granule != 0;
    return count * granularity_;
  }

 private:
  template <class Visit>
  void each_hole(const Visit& visit) const {
    for (std::uint64_t begin = 0; begin < granules_.size(); ++begin) {
      if (granules_[begin] != 0) continue;
      std::uint64_t end = begin;
      while (end < granules_.size() && granules_[end] == 0) ++end;
      visit(begin, end);
      begin = end;
    }
  }

  std::uint64_t granularity_;
  std::vector<std::uint32_t> granules_;  // 0: free
};

}  // namespace terrace::testing

// An array of amounts that searches change by ranges and ask for the largest in a range, all the time: bytes
// in use at each moment, during each kernel or in each row of memory.
//
// It is a wide tree: places in blocks, blocks in blocks. A block knows the most below it and what was added
// to all below it at once. A short range is changed in place, and a long one touches a few blocks of each
// level. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace terrace::optim {

class RangeMaximum {
 public:
  explicit RangeMaximum(std::uint32_t moments);

  /// Adds to every place from `first` on, without `end`. Negative amounts take away.
  void add(std::uint32_t first, std::uint32_t end, std::int64_t bytes) {
    if (first < end) add(0, first, end, bytes);
  }
  /// The largest amount from `first` on, without `end`; 0 where the range is empty.
  std::int64_t most(std::uint32_t first, std::uint32_t end) const {
    return first < end ? most(0, first, end) : 0;
  }

 private:
  struct Level {
    std::vector<std::int64_t> most;   ///< by node: the largest below it, without what its ancestors got
    std::vector<std::int64_t> whole;  ///< by node: what was added to all below it
  };

  void add(std::size_t level, std::uint32_t first, std::uint32_t end, std::int64_t bytes);
  void add_nodes(std::size_t level, std::uint32_t first, std::uint32_t end, std::int64_t bytes);
  std::int64_t most(std::size_t level, std::uint32_t first, std::uint32_t end) const;
  std::int64_t most_of(std::size_t level, std::uint32_t first, std::uint32_t end) const;

  std::vector<Level> levels_;  ///< the first level is the array itself
};

}  // namespace terrace::optim

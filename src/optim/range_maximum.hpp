// Bytes at each moment, or in each row of memory, for a search that changes and asks them all the time.
//
// A wide tree: moments in blocks, blocks in blocks. A block knows the most below it and what was added to all
// below it at once, so that short stays are changed in place and long ones touch a few blocks of each level.
#pragma once

#include <cstdint>
#include <vector>

namespace terrace::optim {

class Loads {
 public:
  explicit Loads(std::uint32_t moments);

  /// At moments from `first` on, without `end`. Negative amounts take away.
  void add(std::uint32_t first, std::uint32_t end, std::int64_t bytes) {
    if (first < end) add(0, first, end, bytes);
  }
  /// 0 where first >= end.
  std::int64_t most(std::uint32_t first, std::uint32_t end) const {
    return first < end ? most(0, first, end) : 0;
  }

 private:
  struct Level {
    std::vector<std::int64_t> most;   ///< by node: of what is below it, without what its ancestors got
    std::vector<std::int64_t> whole;  ///< by node: what was added to all below it
  };

  void add(std::size_t level, std::uint32_t first, std::uint32_t end, std::int64_t bytes);
  void add_nodes(std::size_t level, std::uint32_t first, std::uint32_t end, std::int64_t bytes);
  std::int64_t most(std::size_t level, std::uint32_t first, std::uint32_t end) const;
  std::int64_t most_of(std::size_t level, std::uint32_t first, std::uint32_t end) const;

  std::vector<Level> levels_;  ///< the first has the moments
};

}  // namespace terrace::optim

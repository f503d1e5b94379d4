// Bytes of fast memory at each moment, for a search that changes and asks them all the time.
//
// Moments lie in blocks, which know what was added to all of theirs and the most of them: most stays are
// short, and long ones pass over whole blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace terrace::autotm {

class Loads {
 public:
  explicit Loads(std::uint32_t moments)
      : own_((moments / kBlock + 1) * std::size_t{kBlock}), all_(moments / kBlock + 1), most_(all_.size()) {}

  /// At moments from `first` on, without `end`. Negative amounts take away.
  void add(std::uint32_t first, std::uint32_t end, std::int64_t bytes) {
    if (first >= end) return;
    const std::uint32_t from = first / kBlock, last = (end - 1) / kBlock;
    if (from == last) return add_within(from, first, end, bytes);
    add_within(from, first, (from + 1) * kBlock, bytes);
    for (std::uint32_t block = from + 1; block < last; ++block) {
      all_[block] += bytes;
      most_[block] += bytes;
    }
    add_within(last, last * kBlock, end, bytes);
  }

  /// 0 where first >= end.
  std::int64_t most(std::uint32_t first, std::uint32_t end) const {
    if (first >= end) return 0;
    const std::uint32_t from = first / kBlock, last = (end - 1) / kBlock;
    if (from == last) return most_within(from, first, end);
    const std::int64_t ends =
        std::max(most_within(from, first, (from + 1) * kBlock), most_within(last, last * kBlock, end));
    return from + 1 == last ? ends : std::max(ends, *std::max_element(&most_[from + 1], &most_[last]));
  }

 private:
  static constexpr std::uint32_t kBlock = 32;

  void add_within(std::uint32_t block, std::uint32_t first, std::uint32_t end, std::int64_t bytes) {
    for (std::uint32_t m = first; m < end; ++m) own_[m] += bytes;
    most_[block] = most_within(block, block * kBlock, (block + 1) * kBlock);
  }
  std::int64_t most_within(std::uint32_t block, std::uint32_t first, std::uint32_t end) const {
    std::int64_t most = own_[first];
    for (std::uint32_t m = first + 1; m < end; ++m) most = std::max(most, own_[m]);
    return most + all_[block];
  }

  std::vector<std::int64_t> own_;         ///< by moment, without what was added to its whole block
  std::vector<std::int64_t> all_, most_;  ///< by block
};

}  // namespace terrace::autotm

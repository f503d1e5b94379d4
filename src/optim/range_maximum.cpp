#include "optim/range_maximum.hpp"

#include <algorithm>
#include <limits>

namespace terrace::optim {
namespace {

constexpr std::uint32_t kWidth = 32;

}  // namespace

RangeMaximum::RangeMaximum(std::uint32_t moments) {
  std::size_t nodes = moments;
  do {
    nodes = (nodes + kWidth - 1) / kWidth;
    // Blocks are always whole, so that no loop has to ask where one ends.
    levels_.push_back({std::vector<std::int64_t>(nodes * kWidth), std::vector<std::int64_t>(nodes * kWidth)});
  } while (nodes > 1);
}

void RangeMaximum::add(std::size_t level, std::uint32_t first, std::uint32_t end, std::int64_t bytes) {
  const std::uint32_t from = (first + kWidth - 1) / kWidth, to = end / kWidth;
  if (level + 1 == levels_.size() || from > to) return add_nodes(level, first, end, bytes);
  if (from < to) add(level + 1, from, to, bytes);
  if (first < from * kWidth) add_nodes(level, first, from * kWidth, bytes);
  if (to * kWidth < end) add_nodes(level, to * kWidth, end, bytes);
}

/// pre: the nodes are of one block
void RangeMaximum::add_nodes(std::size_t level, std::uint32_t first, std::uint32_t end, std::int64_t bytes) {
  for (std::uint32_t node = first; node < end; ++node) {
    levels_[level].most[node] += bytes;
    levels_[level].whole[node] += bytes;
  }
  std::uint32_t block = first / kWidth;
  for (std::size_t above = level + 1; above < levels_.size(); ++above, block /= kWidth) {
    const std::int64_t* below = &levels_[above - 1].most[block * kWidth];
    levels_[above].most[block] = levels_[above].whole[block] + *std::max_element(below, below + kWidth);
  }
}

std::int64_t RangeMaximum::most(std::size_t level, std::uint32_t first, std::uint32_t end) const {
  const std::uint32_t from = (first + kWidth - 1) / kWidth, to = end / kWidth;
  if (level + 1 == levels_.size() || from > to) return most_of(level, first, end);
  std::int64_t found = std::numeric_limits<std::int64_t>::min();
  if (from < to) found = most(level + 1, from, to);
  if (first < from * kWidth) found = std::max(found, most_of(level, first, from * kWidth));
  if (to * kWidth < end) found = std::max(found, most_of(level, to * kWidth, end));
  return found;
}

/// Adds what the ancestors of the nodes got. pre: the nodes are of one block
std::int64_t RangeMaximum::most_of(std::size_t level, std::uint32_t first, std::uint32_t end) const {
  const std::int64_t* nodes = levels_[level].most.data();
  std::int64_t found = *std::max_element(nodes + first, nodes + end);
  std::uint32_t block = first / kWidth;
  for (std::size_t above = level + 1; above < levels_.size(); ++above, block /= kWidth)
    found += levels_[above].whole[block];
  return found;
}

}  // namespace terrace::optim

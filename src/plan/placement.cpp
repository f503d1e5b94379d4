// SPDX-License-Identifier: Apache-2.0
#include "plan/placement.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace terrace {
namespace {

constexpr std::size_t kLongestRow = 256;

}  // namespace

std::uint64_t Shelf::place(const Box& box, Fit fit) {
  const bool some_away = some_away_ || box.away.exists();
  const std::uint64_t offset = fit == Fit::lowest
                                   ? (some_away ? lowest_gap<true>(box) : lowest_gap<false>(box))
                                   : (some_away ? tightest_gap<true>(box) : tightest_gap<false>(box));
  put(box, offset);
  return offset;
}

void Shelf::clear() {
  rows_.clear();
  some_away_ = false;
  top_ = 0;
}

// All ones where the two are live at one time, else zero. No branch: it would be as good as random, and cost
// most of the time. Most sets have no box that is ever away, and are spared the question.
template <bool kSomeAway>
std::uint64_t Shelf::live_mask(const Placed& placed, const Box& box) {
  const bool overlap = (placed.first <= box.last) & (placed.last >= box.first);
  if constexpr (!kSomeAway) return -static_cast<std::uint64_t>(overlap);
  const unsigned apart = unsigned{placed.away.covers(box.first, box.last)} |
                         unsigned{box.away.covers(placed.first, placed.last)};
  return -static_cast<std::uint64_t>(overlap & (apart == 0));
}

template <bool kSomeAway>
std::uint64_t Shelf::lowest_gap(const Box& box) {
  std::uint64_t floor = 0;  // of the gap below the box looked at
  for (const Row& row : rows_) {
    for (const Placed& placed : row) {
      const std::uint64_t live = live_mask<kSomeAway>(placed, box);
      if ((placed.begin & live) >= floor + box.size) return floor;
      floor = std::max(floor, placed.end & live);
    }
    looks_ += row.size();
  }
  return floor;
}

template <bool kSomeAway>
std::uint64_t Shelf::tightest_gap(const Box& box) {
  constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t floor = 0, best = 0, best_size = kNone;
  for (const Row& row : rows_) {
    for (const Placed& placed : row) {
      const std::uint64_t live = live_mask<kSomeAway>(placed, box);
      const std::uint64_t ceiling = placed.begin & live;
      if (ceiling >= floor + box.size && ceiling - floor < best_size) {
        best = floor;
        best_size = ceiling - floor;
      }
      floor = std::max(floor, placed.end & live);
    }
    looks_ += row.size();
  }
  return best_size != kNone ? best : floor;
}

void Shelf::put(const Box& box, std::uint64_t offset) {
  ++looks_;
  some_away_ = some_away_ || box.away.exists();
  top_ = std::max(top_, offset + box.size);
  if (rows_.empty()) rows_.emplace_back().reserve(kLongestRow);
  const auto above =
      std::upper_bound(rows_.begin() + 1, rows_.end(), offset,
                       [](std::uint64_t begin, const Row& row) { return begin < row.front().begin; });
  Row& row = *std::prev(above);
  const auto at =
      std::upper_bound(row.begin(), row.end(), offset,
                       [](std::uint64_t begin, const Placed& placed) { return begin < placed.begin; });
  row.insert(at, {offset, offset + box.size, box.first, box.last, box.away});
  if (row.size() < kLongestRow) return;
  Row upper;
  upper.reserve(kLongestRow);
  const auto middle = row.begin() + kLongestRow / 2;
  upper.assign(middle, row.end());
  row.erase(middle, row.end());
  rows_.insert(above, std::move(upper));
}

}  // namespace terrace

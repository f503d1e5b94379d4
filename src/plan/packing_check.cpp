// SPDX-License-Identifier: Apache-2.0
// What holds of every packing: its lower bound, and that it is valid. An item that is away for a while is two
// here, before and after, of one offset.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "plan/packing.hpp"

namespace terrace {
namespace {

class Validator {
 public:
  Validator(std::span<const PackingItem> items, const Packing& packing) : items_(items), packing_(packing) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto [size, first, last, away] = items[i];
      if (size.count == 0) continue;  // it is nowhere
      stays_.push_back({i, first, away.exists() ? away.left : last});
      if (away.exists()) stays_.push_back({i, away.back, last});
    }
  }

  Result<void> run() const {
    if (packing_.offsets.size() != items_.size())
      return wrong(fmt::format("there are {} offsets for {} items", packing_.offsets.size(), items_.size()));
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (const auto fine = in_place(i); !fine) return fine;
    return apart();
  }

 private:
  struct Stay {
    std::size_t item;
    std::uint32_t first, last;
  };

  static Error wrong(const std::string& reason) {
    return {ErrorCode::inconsistent, fmt::format("the packing is wrong: {}", reason)};
  }

  std::string described(std::size_t i) const {
    return fmt::format("item {} (offsets {} to {}, kernels {} to {})", i, packing_.offsets[i],
                       packing_.offsets[i] + items_[i].size.count, items_[i].first, items_[i].last);
  }

  Result<void> in_place(std::size_t i) const {
    const std::uint64_t offset = packing_.offsets[i];
    if (offset % packing_.alignment.count != 0)
      return wrong(fmt::format("{} is not at a multiple of {}", described(i), packing_.alignment.count));
    if (offset > packing_.total.count || items_[i].size.count > packing_.total.count - offset)
      return wrong(fmt::format("{} ends after the total of {}", described(i), packing_.total.count));
    return {};
  }

  // Sweeps over time with the live items by offset: as long as they do not overlap, a new one can only
  // overlap the two it comes between.
  Result<void> apart() const {
    const auto by_first = stays_by(&Stay::first), by_last = stays_by(&Stay::last);
    std::set<std::pair<std::uint64_t, std::size_t>> live;
    auto ending = by_last.begin();
    for (const Stay& stay : by_first) {
      const std::size_t i = stay.item;
      for (; ending->last < stay.first; ++ending) live.erase({packing_.offsets[ending->item], ending->item});
      const auto [at, inserted] = live.insert({packing_.offsets[i], i});
      if (at != live.begin() && overlap(std::prev(at)->second, i)) return clash(std::prev(at)->second, i);
      if (std::next(at) != live.end() && overlap(i, std::next(at)->second))
        return clash(std::next(at)->second, i);
    }
    return {};
  }

  std::vector<Stay> stays_by(std::uint32_t Stay::*when) const {
    std::vector<Stay> stays = stays_;
    std::sort(stays.begin(), stays.end(), [&](const Stay& a, const Stay& b) {
      return std::pair(a.*when, a.item) < std::pair(b.*when, b.item);
    });
    return stays;
  }

  // pre: `low` does not begin above `high`
  bool overlap(std::size_t low, std::size_t high) const {
    return packing_.offsets[high] - packing_.offsets[low] < items_[low].size.count;
  }
  Error clash(std::size_t a, std::size_t b) const {
    return wrong(fmt::format("{} and {} overlap", described(std::min(a, b)), described(std::max(a, b))));
  }

  const std::span<const PackingItem> items_;
  const Packing& packing_;
  std::vector<Stay> stays_;
};

}  // namespace

Bytes live_bytes_bound(std::span<const PackingItem> items, Bytes alignment) {
  check(alignment.count > 0, "an alignment of nothing");
  // Sizes that come and go, in the order of time; at one time the coming are counted before the going.
  struct Change {
    std::uint32_t when;
    bool goes;
    std::uint64_t size;
  };
  std::vector<Change> changes;
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::uint64_t sum = 0;
  for (const PackingItem& item : items) {
    check(item.first <= item.last, "an item ends before it begins");
    const TimeAway& away = item.away;
    check(!away.exists() || (item.first <= away.left && away.left < away.back && away.back <= item.last),
          "an absence lies within its item's life");
    check(item.size.count <= kMost - sum && alignment.count <= kMost - sum, "the sizes are beyond 64 bits");
    const std::uint64_t size = round_up(item.size, alignment).count;
    sum += size;
    check(sum <= kMost, "the sizes are beyond 64 bits");
    changes.push_back({item.first, false, size});
    changes.push_back({item.last, true, size});
    if (!away.exists()) continue;
    changes.push_back({away.left, true, size});
    changes.push_back({away.back, false, size});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return std::pair(a.when, a.goes) < std::pair(b.when, b.goes);
  });
  std::uint64_t live = 0, most = 0;
  for (const Change& change : changes) {
    live = change.goes ? live - change.size : live + change.size;
    most = std::max(most, live);
  }
  return {most};
}

Result<void> validate(std::span<const PackingItem> items, const Packing& packing) {
  check(packing.alignment.count > 0, "an alignment of nothing");
  return Validator(items, packing).run();
}

}  // namespace terrace

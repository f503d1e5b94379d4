// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <vector>

#include "plan/packing.hpp"

namespace terrace {
namespace {

constexpr std::uint64_t kEndless = std::uint64_t{1} << 62;

/// Free space of one tier, by offset. A plain list: looking through it is what takes the time.
class Holes {
 public:
  Holes() : holes_{{0, kEndless}} {}

  /// The lowest or the tightest hole.
  std::uint64_t take_low(std::uint64_t size, bool tightest) {
    std::size_t best = holes_.size() - 1;
    for (std::size_t i = 0; i < holes_.size(); ++i) {
      if (holes_[i].size() < size || (tightest && holes_[i].size() >= holes_[best].size())) continue;
      best = i;
      if (!tightest) break;
    }
    return cut(best, holes_[best].begin, size);
  }

  /// The highest place that ends at or below `limit`, else the lowest hole.
  std::uint64_t take_high(std::uint64_t size, std::uint64_t limit) {
    for (std::size_t i = holes_.size(); i-- > 0;) {
      const std::uint64_t end = std::min(holes_[i].end, limit);
      if (end >= holes_[i].begin + size) return cut(i, end - size, size);
    }
    return take_low(size, false);
  }

  void give_back(std::uint64_t begin, std::uint64_t end) {
    const auto next = std::lower_bound(holes_.begin(), holes_.end(), begin,
                                       [](const Hole& hole, std::uint64_t at) { return hole.begin < at; });
    const bool joins_next = next != holes_.end() && next->begin == end;
    const bool joins_last = next != holes_.begin() && std::prev(next)->end == begin;
    if (joins_last && joins_next) {
      std::prev(next)->end = next->end;
      holes_.erase(next);
    } else if (joins_last) {
      std::prev(next)->end = end;
    } else if (joins_next) {
      next->begin = begin;
    } else {
      holes_.insert(next, {begin, end});
    }
  }

 private:
  struct Hole {
    std::uint64_t begin, end;
    std::uint64_t size() const { return end - begin; }
  };

  std::uint64_t cut(std::size_t i, std::uint64_t begin, std::uint64_t size) {
    const Hole hole = holes_[i];
    const auto place = holes_.begin() + static_cast<std::ptrdiff_t>(i);
    const bool below = begin > hole.begin, above = begin + size < hole.end;
    if (below && above) {
      place->end = begin;
      holes_.insert(place + 1, {begin + size, hole.end});
    } else if (below) {
      place->end = begin;
    } else if (above) {
      place->begin = begin + size;
    } else {
      holes_.erase(place);
    }
    return begin;
  }

  std::vector<Hole> holes_;  ///< neighbours are joined; the last has no end
};

struct Way {
  std::uint32_t long_stay;  ///< from this length on a stay is long
  bool tightest;
};

class InTimeOrder {
 public:
  InTimeOrder(std::span<const PackingItem> items, Bytes alignment, Bytes limit)
      : items_(items), alignment_(alignment), limit_(round_down(limit, alignment).count) {
    starts_.resize(items.size());
    std::iota(starts_.begin(), starts_.end(), 0U);
    ends_ = starts_;
    // The larger first: it has fewer places to go.
    std::stable_sort(starts_.begin(), starts_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return items[a].first != items[b].first ? items[a].first < items[b].first
                                              : items[a].size > items[b].size;
    });
    std::stable_sort(ends_.begin(), ends_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return items[a].last < items[b].last; });
  }

  Packing pack(const Way& way) const {
    Packing packing{std::vector<std::uint64_t>(items_.size()), {}, alignment_};
    Holes holes;
    std::size_t ended = 0;
    for (const std::uint32_t i : starts_) {
      for (; items_[ends_[ended]].last < items_[i].first; ++ended) {
        const std::uint32_t gone = ends_[ended];
        if (items_[gone].size.count > 0)
          holes.give_back(packing.offsets[gone], packing.offsets[gone] + size(gone));
      }
      if (items_[i].size.count == 0) continue;
      const bool stays = items_[i].last - items_[i].first >= way.long_stay;
      packing.offsets[i] = stays ? holes.take_low(size(i), way.tightest) : holes.take_high(size(i), limit_);
      packing.total = std::max(packing.total, Bytes{packing.offsets[i] + size(i)});
    }
    return packing;
  }

  /// That share of all stays is shorter.
  std::uint32_t length_at(double share) const {
    std::vector<std::uint32_t> lengths;
    for (const PackingItem& item : items_) lengths.push_back(item.last - item.first);
    if (lengths.empty()) return 0;
    const auto place =
        lengths.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(lengths.size() - 1));
    std::nth_element(lengths.begin(), place, lengths.end());
    return *place;
  }

 private:
  std::uint64_t size(std::uint32_t item) const { return round_up(items_[item].size, alignment_).count; }

  std::span<const PackingItem> items_;
  Bytes alignment_;
  std::uint64_t limit_;
  std::vector<std::uint32_t> starts_, ends_;
};

}  // namespace

Packing pack_in_time_order(std::span<const PackingItem> items, Bytes alignment, Bytes limit) {
  const InTimeOrder order(items, alignment, limit);
  Packing best;
  constexpr std::pair<double, bool> kWays[] = {
      {0.5, false}, {0.8, false}, {0, false}, {0.5, true}, {0.8, true}};
  for (const auto& [share, tightest] : kWays) {
    Packing packing = order.pack({order.length_at(share), tightest});
    if (best.offsets.empty() || packing.total < best.total) best = std::move(packing);
    if (best.total <= limit) break;
  }
  return best;
}

}  // namespace terrace

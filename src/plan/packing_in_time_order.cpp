// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <vector>

#include "plan/packing.hpp"

namespace terrace {
namespace {

constexpr std::uint64_t kEndless = std::uint64_t{1} << 62;
/// Up to so many items each may be compared with all others.
constexpr std::size_t kFew = 8000;

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
  /// `limits`: by item, where it is to end at the latest.
  InTimeOrder(std::span<const PackingItem> items, Bytes alignment, std::vector<std::uint64_t> limits)
      : items_(items), alignment_(alignment), limits_(std::move(limits)) {
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
      packing.offsets[i] =
          stays ? holes.take_low(size(i), way.tightest) : holes.take_high(size(i), limits_[i]);
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
  std::vector<std::uint64_t> limits_;
  std::vector<std::uint32_t> starts_, ends_;
};

/// The share of stays that are short, and whether long ones take the tightest hole.
constexpr std::pair<double, bool> kWays[] = {
    {0.5, false}, {0.8, false}, {0, false}, {0.5, true}, {0.8, true}};

std::uint64_t end_of(const PackingItem& item, std::uint64_t offset, Bytes alignment) {
  return offset + round_up(item.size, alignment).count;
}

/// For each item the most that `depth` has while it is live. Moments are passed in order; of those before,
/// only the ones that nothing later exceeds are kept.
std::vector<std::uint64_t> deepest_during(std::span<const PackingItem> items,
                                          const std::vector<std::uint64_t>& depth) {
  std::vector<std::uint32_t> by_end(items.size());
  std::iota(by_end.begin(), by_end.end(), 0U);
  std::stable_sort(by_end.begin(), by_end.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return items[a].last < items[b].last; });
  std::vector<std::uint64_t> deepest(items.size());
  std::vector<std::uint32_t> kept;
  std::uint32_t moment = 0;
  for (const std::uint32_t i : by_end) {
    for (; moment <= items[i].last && moment < depth.size(); ++moment) {
      while (!kept.empty() && depth[kept.back()] <= depth[moment]) kept.pop_back();
      kept.push_back(moment);
    }
    const auto first = std::lower_bound(kept.begin(), kept.end(), items[i].first);
    if (first != kept.end()) deepest[i] = depth[*first];
  }
  return deepest;
}

/// Places those first that must end lowest, each at the lowest place that is free for all of its stay.
Packing lowest_limit_first(std::span<const PackingItem> items, Bytes alignment,
                           const std::vector<std::uint64_t>& limits) {
  std::vector<std::uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return limits[a] != limits[b] ? limits[a] < limits[b] : items[a].size > items[b].size;
  });
  Packing packing{std::vector<std::uint64_t>(items.size()), {}, alignment};
  std::vector<std::uint32_t> placed;  // the lowest first
  for (const std::uint32_t i : order) {
    if (items[i].size.count == 0) continue;
    std::uint64_t place = 0;
    for (const std::uint32_t other : placed) {
      if (items[other].first > items[i].last || items[i].first > items[other].last) continue;
      if (packing.offsets[other] >= end_of(items[i], place, alignment)) break;
      place = std::max(place, end_of(items[other], packing.offsets[other], alignment));
    }
    packing.offsets[i] = place;
    packing.total = std::max(packing.total, Bytes{end_of(items[i], place, alignment)});
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), place,
                         [&](std::uint64_t at, std::uint32_t other) { return at < packing.offsets[other]; }),
        i);
  }
  return packing;
}

}  // namespace

Packing pack_in_time_order(std::span<const PackingItem> items, Bytes alignment, Bytes limit) {
  const InTimeOrder order(items, alignment, std::vector(items.size(), round_down(limit, alignment).count));
  Packing best;
  for (const auto& [share, tightest] : kWays) {
    Packing packing = order.pack({order.length_at(share), tightest});
    if (best.offsets.empty() || packing.total < best.total) best = std::move(packing);
    if (best.total <= limit) break;
  }
  return best;
}

Packing pack_with_reserve(std::span<const PackingItem> items, const std::vector<bool>& in_reserve,
                          Bytes alignment, Bytes limit) {
  std::vector<PackingItem> reserved, others;
  for (std::size_t i = 0; i < items.size(); ++i) (in_reserve[i] ? reserved : others).push_back(items[i]);
  // The lowest place in time order keeps the reserve shallow at every moment, and not only at its deepest.
  const Packing hanging =
      InTimeOrder(reserved, alignment, std::vector<std::uint64_t>(reserved.size())).pack({0, false});
  std::vector<std::uint64_t> depth;
  for (std::size_t i = 0; i < reserved.size(); ++i) {
    if (depth.size() <= reserved[i].last) depth.resize(reserved[i].last + std::size_t{1});
    for (std::uint32_t moment = reserved[i].first; moment <= reserved[i].last; ++moment)
      depth[moment] = std::max(depth[moment], end_of(reserved[i], hanging.offsets[i], alignment));
  }
  const std::uint64_t end = std::max(round_down(limit, alignment), hanging.total).count;
  std::vector<std::uint64_t> limits = deepest_during(others, depth);
  for (std::uint64_t& one : limits) one = end - one;
  const InTimeOrder order(others, alignment, limits);
  Packing below;
  std::uint64_t least = ~std::uint64_t{0};  // what the others reach into the reserve
  const auto consider = [&](Packing packing) {
    std::uint64_t excess = 0;
    for (std::size_t i = 0; i < others.size(); ++i) {
      const std::uint64_t reached = end_of(others[i], packing.offsets[i], alignment);
      if (others[i].size.count > 0 && reached > limits[i]) excess = std::max(excess, reached - limits[i]);
    }
    if (excess >= least) return;
    least = excess;
    below = std::move(packing);
  };
  for (const auto& [share, tightest] : kWays)
    if (least > 0) consider(order.pack({order.length_at(share), tightest}));
  if (least > 0 && others.size() <= kFew) consider(lowest_limit_first(others, alignment, limits));
  Packing all{{}, Bytes{end + least}, alignment};
  std::size_t next_reserved = 0, next = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (in_reserve[i]) {
      all.offsets.push_back(all.total.count - end_of(items[i], hanging.offsets[next_reserved++], alignment));
    } else {
      all.offsets.push_back(below.offsets[next++]);
    }
  }
  return all;
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// The smallest packing, by trying every order: too slow for more than a handful of items, too simple to be
// wrong. Some order is enough: take a smallest packing and place its items by offset, each as low as it can
// go. By induction none ends up higher than it was, for all that is below it then was below it before. So one
// of the orders with lowest placing reaches the smallest total.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "plan/packing.hpp"

namespace terrace::testing {

class PackingOracle {
 public:
  PackingOracle(std::span<const PackingItem> items, Bytes alignment) : items_(items), alignment_(alignment) {}

  Bytes smallest_total() const {
    std::vector<std::size_t> order(items_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::uint64_t smallest = ~std::uint64_t{0};
    do {
      smallest = std::min(smallest, total_of(order));
    } while (std::next_permutation(order.begin(), order.end()));
    return {smallest};
  }

  /// Whether there is a position at which both are live, tried one by one.
  static bool meet(const PackingItem& a, const PackingItem& b) {
    const auto is_live = [](const PackingItem& item, std::uint32_t at) {
      const bool away = item.away.exists() && at > item.away.left && at < item.away.back;
      return item.first <= at && at <= item.last && !away;
    };
    for (std::uint32_t at = std::max(a.first, b.first); at <= std::min(a.last, b.last); ++at)
      if (is_live(a, at) && is_live(b, at)) return true;
    return false;
  }

 private:
  std::uint64_t size(std::size_t i) const { return round_up(items_[i].size, alignment_).count; }

  std::uint64_t total_of(const std::vector<std::size_t>& order) const {
    std::vector<std::uint64_t> offsets(items_.size());
    std::uint64_t total = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
      const std::span<const std::size_t> placed(order.data(), k);
      offsets[order[k]] = lowest(order[k], placed, offsets);
      total = std::max(total, offsets[order[k]] + size(order[k]));
    }
    return total;
  }

  // The lowest place is the bottom or the end of another item.
  std::uint64_t lowest(std::size_t i, std::span<const std::size_t> placed,
                       const std::vector<std::uint64_t>& offsets) const {
    std::vector<std::uint64_t> candidates{0};
    for (const std::size_t j : placed) candidates.push_back(offsets[j] + size(j));
    std::sort(candidates.begin(), candidates.end());
    for (const std::uint64_t offset : candidates) {
      const bool free = std::none_of(placed.begin(), placed.end(), [&](std::size_t j) {
        return meet(items_[i], items_[j]) && offset < offsets[j] + size(j) && offsets[j] < offset + size(i);
      });
      if (free) return offset;
    }
    return candidates.back();
  }

  std::span<const PackingItem> items_;
  Bytes alignment_;
};

}  // namespace terrace::testing

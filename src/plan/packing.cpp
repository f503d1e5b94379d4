// SPDX-License-Identifier: Apache-2.0
#include "plan/packing.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "plan/packing_search.hpp"
#include "plan/placement.hpp"

namespace terrace {
namespace {

std::uint64_t length(const Box& box) { return std::uint64_t{box.last} - box.first + 1; }

// As good as none where it is beyond 64 bits: it only orders.
std::uint64_t area(const Box& box) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(box.size, length(box), &product) ? ~std::uint64_t{0} : product;
}

std::uint64_t earliness(const Box& box) { return ~std::uint64_t{box.first}; }

// The larger key goes first. Where keys are equal, the input's order decides.
using Key = std::array<std::uint64_t, 3>;
Key by_length(const Box& box) { return {length(box), box.size, earliness(box)}; }
Key by_size(const Box& box) { return {box.size, earliness(box), 0}; }
Key by_size_then_length(const Box& box) { return {box.size, length(box), earliness(box)}; }
Key by_area(const Box& box) { return {area(box), box.size, earliness(box)}; }
Key by_first(const Box& box) { return {earliness(box), length(box), box.size}; }

// Boxes live all the time come first in every order: at the bottom they are in nobody's way.
Order ordered(std::span<const Box> boxes, Key (*key_of)(const Box&)) {
  Box all{0, ~std::uint32_t{0}, 0};
  for (const Box& box : boxes) all = {0, std::min(all.first, box.first), std::max(all.last, box.last)};
  std::vector<std::pair<bool, Key>> keys;
  for (const Box& box : boxes) keys.emplace_back(box.first == all.first && box.last == all.last, key_of(box));
  Order order(boxes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return keys[a] > keys[b]; });
  return order;
}

// Ordered so that what mostly wins comes first: the others are given up as soon as they are larger. Lifetimes
// and starting times leave gaps of many sizes, which the tightest fit keeps for the boxes that need them.
constexpr std::pair<Key (*)(const Box&), Fit> kAttempts[] = {
    {by_size_then_length, Fit::lowest}, {by_area, Fit::lowest}, {by_area, Fit::tightest},
    {by_first, Fit::tightest},          {by_size, Fit::lowest}, {by_length, Fit::lowest},
    {by_length, Fit::tightest},
};

Layout best_greedy(std::span<const Box> boxes, std::uint64_t bound) {
  Layout best{std::vector<std::uint64_t>(boxes.size()), ~std::uint64_t{0}};
  Shelf shelf;
  for (const auto& [key, fit] : kAttempts) {
    arrange(boxes, ordered(boxes, key), 0, fit, best, shelf);
    if (best.total == bound) break;
  }
  return best;
}

}  // namespace

Packing pack(std::span<const PackingItem> items, Bytes alignment, PackingEffort effort) {
  const std::uint64_t bound = live_bytes_bound(items, alignment) / alignment;
  std::vector<Box> boxes;
  for (const PackingItem& item : items)
    if (item.size.count > 0)
      boxes.push_back({round_up(item.size, alignment) / alignment, item.first, item.last, item.away});
  const Layout layout = improved(boxes, best_greedy(boxes, bound), bound, effort.looks);

  Packing packing{{}, alignment * layout.total, alignment};
  auto offset = layout.offsets.begin();
  for (const PackingItem& item : items)
    packing.offsets.push_back(item.size.count > 0 ? *offset++ * alignment.count : 0);
  return packing;
}

}  // namespace terrace

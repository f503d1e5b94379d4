// SPDX-License-Identifier: Apache-2.0
// Layouts of boxes, and the search for smaller ones among their neighbours. See packing.hpp for the problem.
//
// A layout comes from an order: one box after the other takes its place. Some order with the lowest fit gives
// the smallest layout of all (take its boxes by offset: none can end up higher than it was), so orders are
// all that must be searched.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/placement.hpp"

namespace terrace {

/// The boxes' numbers, in the order of placing.
using Order = std::vector<std::uint32_t>;

struct Layout {
  std::vector<std::uint64_t> offsets;  ///< by the box's number
  std::uint64_t total = 0;
};

/// Lays the boxes out in that order and stores that in `layout`, unless it would be larger: then `layout`
/// stays and false is returned. The first `settled` of the order keep the places they have in `layout`, and
/// are in nobody's way there.
bool arrange(std::span<const Box> boxes, const Order& order, std::size_t settled, Fit fit, Layout& layout,
             Shelf& shelf);

/// Never larger than `layout`. Stops at `bound`, when `looks` are spent, or when nothing was gained for long.
Layout improved(std::span<const Box> boxes, Layout layout, std::uint64_t bound, std::uint64_t looks);

}  // namespace terrace

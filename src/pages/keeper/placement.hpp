// SPDX-License-Identifier: Apache-2.0
// Which stretches move to which tier at the end of an interval: fast promotion, slow demotion (HM-Keeper, 002
// section 8.5).
//
// A histogram over the stretches of all tiers orders them by hotness. The hottest are promoted straight to
// the fastest tier that takes them, wherever they are; to make room, the coldest of that tier are demoted to
// the next lower tier with room. A pure function of its arguments.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace terrace::pages {

/// A stretch as the placement sees it.
struct PlacedStretch {
  double hotness = 0;  ///< the moving average (WHI), at most PlacementLimits::hottest
  std::uint64_t pages = 0;
  unsigned tier = 0;  ///< 0 is the fastest
};

struct PlacementLimits {
  std::vector<std::uint64_t> capacity;  ///< pages of each tier, the fastest first
  std::uint64_t promoted = 51200;       ///< pages that may be promoted in an interval: 200 MB (002 8.5.1)
  double hottest = 3;                   ///< the number of scans
};

struct Migration {
  std::size_t stretch = 0;
  unsigned from = 0, to = 0;
  bool operator==(const Migration&) const = default;
};

/// The number of the histogram's bucket that a hotness falls into; 0 is the coldest.
inline constexpr std::size_t kBuckets = 32;
std::size_t bucket_of(double hotness, double hottest);

/// Returns the moves in an order in which every one finds room. pre: no tier holds more than its capacity
std::vector<Migration> place(std::span<const PlacedStretch> stretches, const PlacementLimits& limits);

}  // namespace terrace::pages

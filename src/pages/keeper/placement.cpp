// SPDX-License-Identifier: Apache-2.0
#include "pages/keeper/placement.hpp"

#include <algorithm>
#include <array>

namespace terrace::pages {
namespace {

class Placement {
 public:
  Placement(std::span<const PlacedStretch> stretches, const PlacementLimits& limits)
      : stretches_(stretches), room_(limits.capacity), left_(limits.promoted), hottest_(limits.hottest) {
    for (std::size_t i = 0; i < stretches.size(); ++i) {
      tier_.push_back(stretches[i].tier);
      buckets_[bucket(i)].push_back(i);
      room_[stretches[i].tier] -= std::min(room_[stretches[i].tier], stretches[i].pages);
    }
  }

  std::vector<Migration> run() {
    unsigned to = 0;
    for (std::size_t b = kBuckets; b-- > 0 && left_ > 0;) {
      for (const std::size_t stretch : buckets_[b]) {
        // A tier with nobody colder to give up is done: whatever is less hot goes to the next one.
        while (to < room_.size() && tier_[stretch] > to && !promote(stretch, to)) ++to;
        if (to == room_.size()) return moves_;
      }
    }
    return moves_;
  }

 private:
  std::size_t bucket(std::size_t stretch) const { return bucket_of(stretches_[stretch].hotness, hottest_); }

  void move(std::size_t stretch, unsigned to) {
    const std::uint64_t pages = stretches_[stretch].pages;
    moves_.push_back({stretch, tier_[stretch], to});
    room_[tier_[stretch]] += pages;
    room_[to] -= pages;
    tier_[stretch] = to;
    coldest_[to] = std::min(coldest_[to], Place{bucket(stretch), 0});
  }

  /// Returns false where the tier has no room for it and cannot make any.
  bool promote(std::size_t stretch, unsigned to) {
    const std::uint64_t pages = stretches_[stretch].pages;
    if (pages > left_) return true;  // the interval's allowance is spent: it may go in the next one
    if (room_[to] < pages && !make_room(to, pages, bucket(stretch))) return false;
    left_ -= pages;
    move(stretch, to);
    return true;
  }

  /// Demotes the coldest of a tier, colder than `than`, until `pages` fit; or nothing.
  bool make_room(unsigned tier, std::uint64_t pages, std::size_t than) {
    std::vector<std::size_t> leaving;
    std::uint64_t gained = room_[tier];
    Place at = coldest_[tier];
    for (; at.bucket < than && gained < pages; at = {at.bucket + 1, 0}) {
      for (; at.index < buckets_[at.bucket].size() && gained < pages; ++at.index) {
        const std::size_t stretch = buckets_[at.bucket][at.index];
        if (tier_[stretch] != tier) continue;
        if (leaving.empty()) coldest_[tier] = at;
        leaving.push_back(stretch);
        gained += stretches_[stretch].pages;
      }
    }
    if (leaving.empty()) coldest_[tier] = std::max(coldest_[tier], Place{than, 0});
    if (gained < pages) return false;
    std::vector<std::uint64_t> room = room_;
    std::vector<unsigned> to;
    for (const std::size_t stretch : leaving) {
      const unsigned next = next_lower(tier, stretches_[stretch].pages, room);
      if (next == room.size()) return false;
      room[next] -= stretches_[stretch].pages;
      to.push_back(next);
    }
    for (std::size_t i = 0; i < leaving.size(); ++i) move(leaving[i], to[i]);
    return true;
  }

  static unsigned next_lower(unsigned tier, std::uint64_t pages, const std::vector<std::uint64_t>& room) {
    unsigned next = tier + 1;
    while (next < room.size() && room[next] < pages) ++next;
    return next;
  }

  std::span<const PlacedStretch> stretches_;
  std::vector<std::uint64_t> room_;
  std::uint64_t left_;
  double hottest_;
  std::vector<unsigned> tier_;
  std::array<std::vector<std::size_t>, kBuckets> buckets_;
  /// Nobody before this place of the histogram is in the tier.
  struct Place {
    std::size_t bucket = 0, index = 0;
    auto operator<=>(const Place&) const = default;
  };
  std::vector<Place> coldest_ = std::vector<Place>(room_.size());
  std::vector<Migration> moves_;
};

}  // namespace

std::size_t bucket_of(double hotness, double hottest) {
  const double share = std::clamp(hotness / hottest, 0.0, 1.0);
  return std::min(static_cast<std::size_t>(share * kBuckets), kBuckets - 1);
}

std::vector<Migration> place(std::span<const PlacedStretch> stretches, const PlacementLimits& limits) {
  return Placement(stretches, limits).run();
}

}  // namespace terrace::pages

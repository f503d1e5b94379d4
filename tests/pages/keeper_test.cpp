// SPDX-License-Identifier: Apache-2.0
// HM-Keeper's profiling and placement on a page table that is nothing but a function.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "pages/keeper/allowance.hpp"
#include "pages/keeper/placement.hpp"
#include "pages/keeper/scan_window.hpp"
#include "pages/keeper/stretches.hpp"

namespace terrace::pages {
namespace {

constexpr std::uint64_t kPages = 64 * 1024;  // 256 MiB

ProfilingOptions affording(std::size_t samples) {
  ProfilingOptions options;
  options.seconds_of_a_scan =
      options.interval_seconds * options.overhead / (static_cast<double>(samples) + 0.5) / options.scans;
  return options;
}

/// GUPS with a known hot set: runs of pages, most of them no multiple of the stretches' initial size.
class HotSet {
 public:
  explicit HotSet(std::uint64_t seed) : hot_(kPages), random_(seed) {
    while (std::count(hot_.begin(), hot_.end(), true) < static_cast<std::ptrdiff_t>(kPages / 5)) {
      const std::uint64_t length = 200 + random_.below(2000), first = random_.below(kPages - length);
      std::fill_n(hot_.begin() + static_cast<std::ptrdiff_t>(first), length, true);
    }
  }
  bool hot(std::uint64_t page) const { return hot_[page]; }
  bool referenced(std::uint64_t page) { return random_.below(100) < (hot(page) ? 95U : 3U); }

 private:
  std::vector<bool> hot_;
  SplitMix random_;
};

void run_interval(Stretches& stretches, HotSet& set, std::size_t* most_asked = nullptr) {
  stretches.begin_interval();
  for (int scan = 0; scan < 3; ++scan) {
    const std::size_t asked = stretches.scan([&](std::uint64_t page) { return set.referenced(page); });
    if (most_asked != nullptr) *most_asked = std::max(*most_asked, asked);
  }
  stretches.end_interval();
}

struct Quality {
  double recall = 0, precision = 0;
};

Quality quality_of(const Stretches& stretches, const HotSet& set) {
  double hot = 0, found = 0, said = 0;
  for (const Stretch& stretch : stretches.all()) {
    for (std::uint64_t page = stretch.first; page < stretch.end(); ++page) {
      const bool says = stretch.weighted > 1.5;
      hot += set.hot(page);
      said += says;
      found += says && set.hot(page);
    }
  }
  return {found / hot, found / std::max(said, 1.0)};
}

TEST(Stretches, AffordWhatTheConstraintAllows) {
  ProfilingOptions options;
  options.seconds_of_a_scan = 1e-4;
  EXPECT_EQ(affordable_samples(options), 1666U);  // 10 s x 5% / (100 us x 3), 002 eq. 8.1
  options.overhead = 0.01;
  EXPECT_EQ(affordable_samples(options), 333U);
}

/// Work is counted here, not measured: a sample costs what the test says, half of it when it is taken.
double work_of_interval(Allowance& allowance, SplitMix& random, double least, double most, double* used) {
  allowance.begin_interval();
  for (int scan = 0; scan < 3; ++scan) {
    const double price = least + (most - least) * static_cast<double>(random.below(1000)) / 1000;
    const std::size_t affordable = allowance.samples_of_scan();
    std::size_t samples = 0;
    while (samples < affordable && allowance.may_go_on(static_cast<double>(samples) * price / 2)) ++samples;
    allowance.scanned(samples, static_cast<double>(samples) * price);
  }
  if (used != nullptr) *used += allowance.share();
  return allowance.share();
}

TEST(Allowance, IsKeptWhateverASampleCosts) {
  ProfilingOptions options;
  options.interval_seconds = 1;
  options.overhead = 0.05;
  options.seconds_of_a_scan = 30e-6;
  SplitMix random(1);
  for (const auto& [least, most] :
       {std::pair{10e-6, 10e-6}, {200e-6, 200e-6}, {5e-6, 60e-6}, {1e-6, 900e-6}}) {
    Allowance allowance(options);
    double sum = 0;
    for (int interval = 0; interval < 200; ++interval) {
      ASSERT_LE(work_of_interval(allowance, random, least, most, &sum), 0.05)
          << "interval " << interval << ", samples of " << least << " to " << most << " s";
    }
    if (least == most) {
      EXPECT_GT(sum / 200, 0.03) << "an allowance is there to be used";
    }
  }
}

TEST(Allowance, WhatWasSpentTooMuchIsSavedAfterwards) {
  ProfilingOptions options;
  options.interval_seconds = 1;
  Allowance allowance(options);
  allowance.begin_interval();
  allowance.spend(0.14);  // a pause that nobody could foresee
  EXPECT_EQ(allowance.samples_of_scan(), 0U);
  double all = allowance.share();
  for (int i = 0; i < 3; ++i) {
    allowance.begin_interval();
    const std::size_t samples = allowance.samples_of_scan();
    allowance.scanned(samples, static_cast<double>(samples) * options.seconds_of_a_scan);
    all += allowance.share();
  }
  EXPECT_LE(all, 4 * 0.05);
  EXPECT_GT(allowance.samples_of_scan(), 0U) << "it is paid back";
}

/// A program that updates hot pages 80 times a second each and all others twice: three scans of a third of a
/// second find half of the cold ones referenced.
Quality found_by_windows(double fast_share, bool adapts) {
  HotSet set(3);
  SplitMix random(4);
  Stretches stretches(affording(600));
  stretches.add(0, kPages, 0);
  ScanWindow window(1.0 / 3);
  for (int interval = 0; interval < 40; ++interval) {
    stretches.begin_interval();
    for (int scan = 0; scan < 3; ++scan) {
      std::size_t in_use = 0;
      const std::size_t asked = stretches.scan([&](std::uint64_t page) {
        const double rate = set.hot(page) ? 80 : 2;
        const bool referenced =
            static_cast<double>(random.below(1000000)) < 1e6 * (1 - std::exp(-rate * window.seconds()));
        in_use += referenced;
        return referenced;
      });
      if (adapts) window.scanned(asked, in_use, fast_share);
    }
    stretches.end_interval();
  }
  return quality_of(stretches, set);
}

TEST(ScanWindow, TellsHotMemoryFromMemoryThatIsTouchedNowAndThen) {
  const Quality adapted = found_by_windows(0.5, true), fixed = found_by_windows(0.5, false);
  EXPECT_GT(adapted.recall, 0.9);
  EXPECT_GT(adapted.precision, 0.8);
  EXPECT_LT(fixed.precision, 0.7) << "or the case is too easy to show anything";
}

TEST(ScanWindow, IsAsLongAsAScanWhereLittleIsInUse) {
  ScanWindow window(1);
  for (int i = 0; i < 10; ++i) window.scanned(100, 90, 0.5);
  EXPECT_EQ(window.seconds(), 1.0 / 4);
  window.scanned(100, 20, 0.5);
  EXPECT_EQ(window.seconds(), 1.0 / 4) << "it has found what it looks for";
  for (int i = 0; i < 10; ++i) window.scanned(100, 2, 0.5);
  EXPECT_EQ(window.seconds(), 1);
  for (int i = 0; i < 10; ++i) window.scanned(3, 3, 0.5);
  EXPECT_EQ(window.seconds(), 1) << "three samples say nothing";
}

TEST(Stretches, WhatWasNotAskedIsNotTakenForCold) {
  Stretches stretches(affording(8));
  stretches.add(0, 8 * Stretches::kInitialPages, 0);
  stretches.begin_interval();
  for (int scan = 0; scan < 3; ++scan) {
    stretches.scan([&](std::uint64_t page) -> std::optional<bool> {
      if (page < 4 * Stretches::kInitialPages || scan > 0) return std::nullopt;
      return true;
    });
  }
  stretches.end_interval();
  EXPECT_EQ(stretches.hotness(0), 0) << "nothing is known of it";
  EXPECT_EQ(stretches.hotness(7 * Stretches::kInitialPages), 0.5) << "one scan of three stands for all";
}

TEST(Stretches, FindAKnownHotSet) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    HotSet set(seed);
    Stretches stretches(affording(2048));
    stretches.add(0, kPages, 1);
    for (int interval = 0; interval < 20; ++interval) run_interval(stretches, set);
    const Quality quality = quality_of(stretches, set);
    EXPECT_GE(quality.recall, 0.9) << "seed " << seed;
    EXPECT_GE(quality.precision, 0.8) << "seed " << seed;
    RecordProperty("recall_" + std::to_string(seed), std::to_string(quality.recall));
    RecordProperty("precision_" + std::to_string(seed), std::to_string(quality.precision));
  }
}

TEST(Stretches, TileTheMemoryAndNeverAskMoreThanIsAfforded) {
  for (const std::size_t limit : {20U, 100U, 1000U}) {
    HotSet set(limit);
    Stretches stretches(affording(limit));
    stretches.add(0, kPages, 1);
    std::size_t most_asked = 0;
    for (int interval = 0; interval < 30; ++interval) {
      run_interval(stretches, set, &most_asked);
      std::uint64_t next = 0;
      for (const Stretch& stretch : stretches.all()) {
        ASSERT_EQ(stretch.first, next);
        ASSERT_GE(stretch.pages, Stretches::kLeastPages);
        ASSERT_GE(stretch.quota, 1U);
        next = stretch.end();
      }
      ASSERT_EQ(next, kPages);
    }
    EXPECT_EQ(stretches.sample_limit(), limit);
    EXPECT_LE(most_asked, limit);
    EXPECT_GE(most_asked, limit * 9 / 10) << "the allowance is spent";
  }
}

TEST(Stretches, MergeEagerlyUntilEachHasASample) {
  HotSet set(3);
  Stretches stretches(affording(20));
  stretches.add(0, kPages, 1);
  ASSERT_EQ(stretches.all().size(), 128U);
  double largest = 0;
  for (int interval = 0; interval < 40; ++interval) {
    run_interval(stretches, set);
    largest = std::max(largest, stretches.merge_threshold());
  }
  EXPECT_GT(largest, 1.0) << "a third of three scans did not do";
  EXPECT_LE(stretches.all().size(), 40U);
}

TEST(Stretches, AgeByHalves) {
  Stretches stretches(affording(64));
  stretches.add(0, 512, 0);
  const double expected[] = {1.5, 2.25, 1.125};  // 002 eq. 8.2 with 3, 3 and 0
  for (int interval = 0; interval < 3; ++interval) {
    stretches.begin_interval();
    for (int scan = 0; scan < 3; ++scan) stretches.scan([&](std::uint64_t) { return interval < 2; });
    stretches.end_interval();
    EXPECT_EQ(stretches.all().at(0).weighted, expected[interval]);
  }
}

TEST(Stretches, ForgetPagesThatAreGone) {
  Stretches stretches(affording(64));
  stretches.add(100, 1000, 0);
  stretches.remove(300, 500);
  std::uint64_t pages = 0;
  for (const Stretch& stretch : stretches.all()) {
    pages += stretch.pages;
    EXPECT_TRUE(stretch.end() <= 300 || stretch.first >= 800);
  }
  EXPECT_EQ(pages, 500U);
}

/// Random stretches that fit their tiers, all of the same size or of any.
std::vector<PlacedStretch> random_stretches(SplitMix& random, const std::vector<std::uint64_t>& capacity,
                                            std::uint64_t pages = 0) {
  std::vector<PlacedStretch> all;
  std::vector<std::uint64_t> used(capacity.size());
  for (int i = 0; i < 60; ++i) {
    PlacedStretch stretch{static_cast<double>(random.below(3000)) / 1000,
                          pages != 0 ? pages : 1 + random.below(64),
                          static_cast<unsigned>(random.below(capacity.size()))};
    if (used[stretch.tier] + stretch.pages > capacity[stretch.tier]) continue;
    used[stretch.tier] += stretch.pages;
    all.push_back(stretch);
  }
  return all;
}

TEST(Placement, EveryMoveFindsRoomAndNoDemotionSkipsATierWithRoom) {
  SplitMix random(7);
  std::size_t promotions = 0, demotions = 0;
  for (int round = 0; round < 500; ++round) {
    PlacementLimits limits;
    limits.capacity = {100 + random.below(300), 100 + random.below(600), 100 + random.below(600), 5000};
    limits.promoted = 50 + random.below(400);
    std::vector<PlacedStretch> all = random_stretches(random, limits.capacity);
    std::vector<std::uint64_t> room = limits.capacity;
    for (const PlacedStretch& stretch : all) room[stretch.tier] -= stretch.pages;
    std::uint64_t promoted = 0;
    for (const Migration& move : place(all, limits)) {
      PlacedStretch& stretch = all[move.stretch];
      ASSERT_EQ(stretch.tier, move.from);
      ASSERT_LE(stretch.pages, room[move.to]);
      if (move.to > move.from) {
        ++demotions;
        for (unsigned between = move.from + 1; between < move.to; ++between)
          ASSERT_LT(room[between], stretch.pages) << "a tier with room was skipped";
      } else {
        ++promotions;
        promoted += stretch.pages;
      }
      room[move.from] += stretch.pages;
      room[move.to] -= stretch.pages;
      stretch.tier = move.to;
    }
    ASSERT_LE(promoted, limits.promoted);
  }
  EXPECT_GT(promotions, 1000U);
  EXPECT_GT(demotions, 500U);
}

TEST(Placement, WithoutALimitTheHottestEndUpInTheFastestTier) {
  SplitMix random(8);
  for (int round = 0; round < 200; ++round) {
    PlacementLimits limits;
    limits.capacity = {200, 400, 5000};
    limits.promoted = 1 << 20;
    std::vector<PlacedStretch> all = random_stretches(random, limits.capacity, 10);
    for (const Migration& move : place(all, limits)) all[move.stretch].tier = move.to;
    std::vector<double> sorted;
    for (const PlacedStretch& stretch : all) sorted.push_back(stretch.hotness);
    std::sort(sorted.rbegin(), sorted.rend());
    const std::size_t fit = 20;
    if (all.size() <= fit) continue;
    for (const PlacedStretch& stretch : all) {
      if (bucket_of(stretch.hotness, 3) > bucket_of(sorted[fit - 1], 3)) {
        EXPECT_EQ(stretch.tier, 0U);
      }
    }
  }
}

TEST(Placement, GoesStraightToTheFastestAndThenToTheSecond) {
  PlacementLimits limits;
  limits.capacity = {10, 10, 100};
  const std::vector<PlacedStretch> all{{2.9, 10, 2}, {2.0, 10, 2}, {0.1, 10, 0}, {0.2, 10, 1}};
  const std::vector<Migration> expected{{2, 0, 2}, {0, 2, 0}, {3, 1, 2}, {1, 2, 1}};
  EXPECT_EQ(place(all, limits), expected);
}

}  // namespace
}  // namespace terrace::pages

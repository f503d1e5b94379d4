// SPDX-License-Identifier: Apache-2.0
// Stretches find out which pages of a large memory are in use, at a bounded price (HM-Keeper, 002
// section 8.4).
//
//   stretch   neighbouring pages that are taken to be equally hot; HM-Keeper's "memory region"
//   sample    a page that stands for its stretch: every scan asks whether it was referenced
//   interval  a number of scans, at whose end stretches are merged and split and samples handed out anew
//   hotness   the mean number of scans of an interval that found a sample referenced (HI), and its
//             exponential moving average over the intervals (WHI, 002 eq. 8.2)
//
// Pages are plain numbers: this knows no memory, no clock and no kernel, and the same calls give the same
// result. Each interval draws its samples at random, so that a stretch of hot and cold pages shows itself by
// a hotness that varies. One thread uses it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/random.hpp"

namespace terrace::pages {

struct ProfilingOptions {
  double interval_seconds = 10;
  double overhead = 0.05;           ///< the share of the interval that scanning may take
  double seconds_of_a_scan = 1e-6;  ///< of one sample, as measured
  unsigned scans = 3;               ///< in an interval: more change less than 5% of the decisions (002)
  std::uint64_t seed = 1;
};

/// How many samples an interval can afford (002 eq. 8.1); at least one.
std::size_t affordable_samples(const ProfilingOptions& options);

struct Sample {
  std::uint64_t page = 0;
  unsigned seen = 0;   ///< scans of this interval that found it referenced
  unsigned asked = 0;  ///< scans that could ask
};

struct Stretch {
  std::uint64_t first = 0, pages = 0;
  unsigned tier = 0;                 ///< where its pages are; neighbours in different tiers are not merged
  double hotness = 0, previous = 0;  ///< of the last interval (HI) and of the one before
  double weighted = 0;               ///< WHI
  bool just_split = false;           ///< in this interval, so that it is not merged again at once
  std::uint32_t quota = 1;           ///< samples that it may have
  std::vector<Sample> samples;       ///< empty where the interval could not afford any
  std::uint64_t end() const { return first + pages; }
};

class Stretches {
 public:
  static constexpr std::uint64_t kInitialPages = 512;  // what a last-level page directory entry maps
  static constexpr std::uint64_t kLeastPages = 16;     // what can be moved: a part

  explicit Stretches(const ProfilingOptions& options);

  /// Pages [first, first + pages) exist from now on, in this tier. pre: none of them does
  void add(std::uint64_t first, std::uint64_t pages, unsigned tier);
  /// They are gone. pre: they are whole stretches, or parts of them
  void remove(std::uint64_t first, std::uint64_t pages);
  /// Says where a stretch's pages were moved to.
  void set_tier(std::size_t stretch, unsigned tier) { stretches_[stretch].tier = tier; }

  /// What a scan was measured to take changes how many samples there may be, from the next interval on.
  void set_limit(std::size_t samples) { limit_ = samples; }
  /// Returns the moving average of the stretch that holds a page, from 0 to 1; less than 0 where there is
  /// none.
  double hotness(std::uint64_t page) const;
  /// Stretches are neither merged nor split, to see what that is worth.
  void keep_size(bool keep) { keeps_size_ = keep; }

  /// Draws the samples of an interval.
  void begin_interval();
  /// One scan: asks of each sample whether it was referenced since the last one; nothing where that is not
  /// known. Returns how many are known.
  std::size_t scan(const std::function<std::optional<bool>(std::uint64_t page)>& referenced);
  /// Updates hotness, splits, merges, and hands out samples.
  void end_interval();

  /// In order of addresses.
  const std::vector<Stretch>& all() const { return stretches_; }
  std::size_t sample_limit() const { return limit_; }
  /// The difference below which neighbours are merged: a third of the scans, more while stretches are too
  /// many.
  double merge_threshold() const { return merge_below_; }
  double split_threshold() const { return 2.0 / 3 * scans_; }

 private:
  void settle_samples();
  void measure();
  void split();
  void merge();
  void hand_out();

  std::size_t limit_;
  unsigned scans_;
  double merge_below_;
  bool keeps_size_ = false;
  std::size_t turn_ = 0;  // where sampling goes on if there are more stretches than samples
  SplitMix random_;
  std::vector<Stretch> stretches_;
};

}  // namespace terrace::pages

// SPDX-License-Identifier: Apache-2.0
#include "pages/keeper/stretches.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace terrace::pages {
namespace {

constexpr double kWeightOfNew = 0.5;  // alpha of 002 eq. 8.2
constexpr std::size_t kChanging = 5;  // stretches of largest variance that get what others gave up

double variance(const Stretch& stretch) { return std::abs(stretch.hotness - stretch.previous); }

/// The largest difference between two samples.
unsigned spread_of(const Stretch& stretch) {
  const auto [least, most] =
      std::minmax_element(stretch.samples.begin(), stretch.samples.end(),
                          [](const Sample& a, const Sample& b) { return a.seen < b.seen; });
  return stretch.samples.empty() ? 0 : most->seen - least->seen;
}

double mean_seen(const std::vector<Sample>& samples) {
  double sum = 0;
  for (const Sample& sample : samples) sum += sample.seen;
  return sum / static_cast<double>(samples.size());
}

double by_pages(const Stretch& a, const Stretch& b, double Stretch::*value) {
  const auto wa = static_cast<double>(a.pages), wb = static_cast<double>(b.pages);
  return (a.*value * wa + b.*value * wb) / (wa + wb);
}

std::uint32_t room_for_samples(const Stretch& stretch) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(stretch.pages, UINT32_MAX) - stretch.quota);
}

}  // namespace

std::size_t affordable_samples(const ProfilingOptions& options) {
  const double count =
      options.interval_seconds * options.overhead / (options.seconds_of_a_scan * options.scans);
  return static_cast<std::size_t>(std::clamp(count, 1.0, 1e9));
}

Stretches::Stretches(const ProfilingOptions& options)
    : limit_(affordable_samples(options)),
      scans_(options.scans),
      merge_below_(options.scans / 3.0),
      random_(options.seed) {}

void Stretches::add(std::uint64_t first, std::uint64_t pages, unsigned tier) {
  std::vector<Stretch> added;
  for (std::uint64_t at = first; at < first + pages;) {
    const std::uint64_t end = std::min((at / kInitialPages + 1) * kInitialPages, first + pages);
    Stretch stretch;
    stretch.first = at;
    stretch.pages = end - at;
    stretch.tier = tier;
    added.push_back(std::move(stretch));
    at = end;
  }
  const auto place = std::upper_bound(stretches_.begin(), stretches_.end(), first,
                                      [](std::uint64_t page, const Stretch& s) { return page < s.first; });
  stretches_.insert(place, added.begin(), added.end());
}

void Stretches::remove(std::uint64_t first, std::uint64_t pages) {
  const std::uint64_t end = first + pages;
  std::vector<Stretch> kept;
  kept.reserve(stretches_.size() + 1);
  for (const Stretch& stretch : stretches_) {
    const auto keep = [&](std::uint64_t from, std::uint64_t to) {
      if (from >= to) return;
      Stretch piece = stretch;
      piece.first = from;
      piece.pages = to - from;
      std::erase_if(piece.samples, [&](const Sample& s) { return s.page < from || s.page >= to; });
      piece.quota = static_cast<std::uint32_t>(std::min<std::uint64_t>(piece.quota, piece.pages));
      kept.push_back(std::move(piece));
    };
    if (stretch.end() <= first || stretch.first >= end) {
      kept.push_back(stretch);
    } else {
      keep(stretch.first, std::min(first, stretch.end()));
      keep(std::max(end, stretch.first), stretch.end());
    }
  }
  stretches_ = std::move(kept);
}

void Stretches::begin_interval() {
  std::size_t left = limit_;
  const std::size_t count = stretches_.size();
  for (Stretch& stretch : stretches_) {
    stretch.samples.clear();
    stretch.just_split = false;
  }
  // Where there are more stretches than samples, each interval goes on where the last one stopped.
  const std::size_t start = count > limit_ ? turn_ % count : 0;
  for (std::size_t i = 0; i < count && left > 0; ++i) {
    Stretch& stretch = stretches_[(start + i) % count];
    const std::size_t drawn = std::min<std::size_t>(left, stretch.quota);
    for (std::size_t n = 0; n < drawn; ++n) {
      // One sample in each of equal pieces, so that two never are the same page.
      const std::uint64_t from = stretch.pages * n / drawn, to = stretch.pages * (n + 1) / drawn;
      stretch.samples.push_back({stretch.first + from + random_.below(to - from)});
    }
    left -= drawn;
    turn_ = start + i + 1;
  }
}

double Stretches::hotness(std::uint64_t page) const {
  const auto after = std::upper_bound(stretches_.begin(), stretches_.end(), page,
                                      [](std::uint64_t at, const Stretch& s) { return at < s.first; });
  if (after == stretches_.begin() || std::prev(after)->end() <= page) return -1;
  return std::prev(after)->weighted / scans_;
}

std::size_t Stretches::scan(const std::function<std::optional<bool>(std::uint64_t)>& referenced) {
  std::size_t asked = 0;
  for (Stretch& stretch : stretches_) {
    for (Sample& sample : stretch.samples) {
      const std::optional<bool> answer = referenced(sample.page);
      if (!answer) continue;
      sample.seen += *answer;
      ++sample.asked;
      ++asked;
    }
  }
  return asked;
}

/// A sample that some scans could not ask counts as if those had found it as the others did.
void Stretches::settle_samples() {
  for (Stretch& stretch : stretches_) {
    std::erase_if(stretch.samples, [](const Sample& sample) { return sample.asked == 0; });
    for (Sample& sample : stretch.samples)
      sample.seen = (2 * sample.seen * scans_ + sample.asked) / (2 * sample.asked);
  }
}

void Stretches::end_interval() {
  settle_samples();
  measure();
  if (!keeps_size_) {
    split();
    merge();
  }
  // More stretches than samples: merge more eagerly, interval by interval, until each has one (002 8.4.3).
  const double usual = scans_ / 3.0;
  const double step = scans_ / 12.0;
  merge_below_ = stretches_.size() > limit_ ? std::min(merge_below_ + step, scans_ + step)
                                            : std::max(merge_below_ - step, usual);
  hand_out();
}

void Stretches::measure() {
  for (Stretch& stretch : stretches_) {
    if (stretch.samples.empty()) continue;
    stretch.previous = stretch.hotness;
    stretch.hotness = mean_seen(stretch.samples);
    stretch.weighted = kWeightOfNew * stretch.hotness + (1 - kWeightOfNew) * stretch.weighted;
  }
}

void Stretches::split() {
  std::vector<Stretch> after;
  after.reserve(stretches_.size());
  for (Stretch& stretch : stretches_) {
    if (spread_of(stretch) <= split_threshold() || stretch.pages < 2 * kLeastPages) {
      after.push_back(std::move(stretch));
      continue;
    }
    const std::uint64_t middle = stretch.first + stretch.pages / kLeastPages / 2 * kLeastPages;
    Stretch low = stretch, high = stretch;
    low.pages = middle - low.first;
    high.first = middle;
    high.pages = stretch.end() - middle;
    std::erase_if(low.samples, [&](const Sample& s) { return s.page >= middle; });
    std::erase_if(high.samples, [&](const Sample& s) { return s.page < middle; });
    high.quota = std::max<std::uint32_t>(stretch.quota / 2, 1);
    low.quota = std::max<std::uint32_t>(stretch.quota - stretch.quota / 2, 1);
    for (Stretch* half : {&low, &high}) {
      half->just_split = true;
      half->quota = static_cast<std::uint32_t>(std::min<std::uint64_t>(half->quota, half->pages));
      if (half->samples.empty()) continue;
      half->hotness = mean_seen(half->samples);
      half->weighted += kWeightOfNew * (half->hotness - stretch.hotness);
    }
    after.push_back(std::move(low));
    after.push_back(std::move(high));
  }
  stretches_ = std::move(after);
}

/// Each stretch is merged at most once in an interval, with the neighbour above it.
void Stretches::merge() {
  std::vector<Stretch> after;
  after.reserve(stretches_.size());
  bool merged = true;
  for (Stretch& stretch : stretches_) {
    const bool alike = !merged && !after.back().just_split && !stretch.just_split &&
                       after.back().end() == stretch.first && after.back().tier == stretch.tier &&
                       std::abs(after.back().hotness - stretch.hotness) < merge_below_ &&
                       std::abs(after.back().weighted - stretch.weighted) < merge_below_;
    merged = alike;
    if (!alike) {
      after.push_back(std::move(stretch));
      continue;
    }
    Stretch& below = after.back();
    for (double Stretch::*value : {&Stretch::hotness, &Stretch::previous, &Stretch::weighted})
      below.*value = by_pages(below, stretch, value);
    below.pages += stretch.pages;
    below.quota = std::max<std::uint32_t>((below.quota + stretch.quota) / 2, 1);
    below.samples.clear();
  }
  stretches_ = std::move(after);
}

void Stretches::hand_out() {
  std::size_t used = 0;
  for (const Stretch& stretch : stretches_) used += stretch.quota;
  std::size_t left = limit_ > used ? limit_ - used : 0;
  std::vector<Stretch*> changing;
  for (Stretch& stretch : stretches_) changing.push_back(&stretch);
  const std::size_t top = std::min(kChanging, changing.size());
  std::partial_sort(changing.begin(), changing.begin() + static_cast<std::ptrdiff_t>(top), changing.end(),
                    [](const Stretch* a, const Stretch* b) {
                      return variance(*a) != variance(*b) ? variance(*a) > variance(*b) : a->first < b->first;
                    });
  std::uint64_t pages = 0;
  for (const Stretch& stretch : stretches_) pages += stretch.pages;
  const auto give = [&](Stretch& stretch, std::size_t most) {
    const std::size_t given = std::min({left, most, std::size_t{room_for_samples(stretch)}});
    stretch.quota += static_cast<std::uint32_t>(given);
    left -= given;
  };
  for (std::size_t i = 0; i < top; ++i) give(*changing[i], left / (top - i));
  // What they cannot use goes to all by their sizes, so that the allowance is spent.
  for (std::size_t before = left + 1; left > 0 && left < before;) {
    before = left;
    for (Stretch& stretch : stretches_)
      give(stretch, std::max<std::size_t>(before * stretch.pages / pages, 1));
  }
}

}  // namespace terrace::pages

// SPDX-License-Identifier: Apache-2.0
#include "planners/sentinel/choice.hpp"

#include <algorithm>
#include <limits>

#include "migration/link_use.hpp"

namespace terrace::sentinel {
namespace {

constexpr std::size_t kLargeGraph = 1500;
constexpr std::uint32_t kLongest = 16;  ///< layers of an interval where they may differ

std::uint32_t next_length(const StepView& view, std::uint32_t layers) {
  return view.kernels() > kLargeGraph ? 2 * layers : layers + 1 + layers / 8;
}

/// A fetch for a layer.
struct Fetch {
  std::uint32_t used_before;  ///< one past the layer that used it last; 0: it is out when the step starts
  Seconds time;
};

/// The best way to cut the first layers so that the last interval has some length.
struct Cut {
  Seconds lost{std::numeric_limits<double>::infinity()};
  std::uint32_t before = 0;  ///< length of the interval before the last
};

class UnequalCuts {
 public:
  UnequalCuts(const StepView& view, const Units& units, const Visits& visits, const Schedule& schedule)
      : view_(view), longest_(std::min(kLongest, view.layers())), fetches_(view.layers()) {
    for (std::uint32_t v = 0; v < visits.all.size(); ++v) {
      const Visit& visit = visits.all[v];
      const Unit& unit = units.all[visit.unit];
      if (schedule.in_place[v] || !unit.backing_tier || visit.first == view.kernels()) continue;
      if (!is_fetched(units, visits, schedule, v)) continue;
      const std::uint32_t before =
          visit.previous == kNever ? 0 : view.lifetimes.layer_step({visits.all[visit.previous].last}) + 1;
      fetches_[view.lifetimes.layer_step({visit.first})].push_back(
          {before, time_beside_kernels(*view.request.machine.link(*unit.backing_tier, {0}), unit.size)});
    }
  }

  Cuts run() {
    best_.assign(view_.layers() + 1, std::vector<Cut>(longest_ + 1));
    for (std::uint32_t length = 1; length <= longest_; ++length) begin(length);
    for (std::uint32_t end = 1; end < view_.layers(); ++end) {
      for (std::uint32_t length = 1; length <= std::min(longest_, end); ++length) go_on(end, length);
    }
    return trace_back();
  }

 private:
  /// Returns the time of the fetches for a layer that have to run during the interval from `first` on,
  /// because that interval does not use their tensors.
  Seconds transfers(std::uint32_t layer, std::uint32_t first) const {
    Seconds time{0};
    for (const Fetch& fetch : fetches_[layer]) {
      if (fetch.used_before <= first) time += fetch.time;
    }
    return time;
  }

  /// Begins with one interval, whose fetches nothing hides.
  void begin(std::uint32_t length) {
    Seconds lost{0};
    for (std::uint32_t layer = 0; layer < length; ++layer) lost += transfers(layer, 0);
    best_[length][length] = {lost, 0};
  }

  void go_on(std::uint32_t end, std::uint32_t length) {
    const std::uint32_t first = end - length;
    const Seconds hides = view_.begin[view_.first_kernel[end]] - view_.begin[view_.first_kernel[first]];
    const Seconds before = best_[end][length].lost;
    Seconds moving{0};
    for (std::uint32_t next = 1; next <= longest_ && end + next <= view_.layers(); ++next) {
      moving += transfers(end + next - 1, first);
      const Seconds lost = before + std::max(Seconds{0}, moving - hides);
      Cut& cut = best_[end + next][next];
      if (lost < cut.lost) cut = {lost, length};
    }
  }

  Cuts trace_back() const {
    std::uint32_t end = view_.layers(), length = 1;
    for (std::uint32_t i = 1; i <= longest_; ++i) {
      if (best_[end][i].lost < best_[end][length].lost) length = i;
    }
    Cuts cuts;
    while (end > 0) {
      const std::uint32_t before = best_[end][length].before;
      end -= length;
      cuts.push_back(view_.first_kernel[end]);
      length = before;
    }
    std::reverse(cuts.begin(), cuts.end());
    return cuts;
  }

  const StepView& view_;
  std::uint32_t longest_;
  std::vector<std::vector<Fetch>> fetches_;  ///< by the layer that needs it
  std::vector<std::vector<Cut>> best_;       ///< by layers cut, and by the layers of the last interval
};

}  // namespace

Choice choose_equal(const StepView& view, const Units& units, Bytes capacity, const ScheduleRules& rules) {
  Choice best;
  Seconds least{};
  for (std::uint32_t layers = 1; layers <= view.layers(); layers = next_length(view, layers)) {
    Cuts cuts = equal_cuts(view, layers);
    const Visits visits = make_visits(view, units, cuts);
    const Schedule schedule = make_schedule(view, units, visits, capacity, rules);
    if (!schedule.fits) break;
    const Seconds loss = predicted_loss(view, units, visits, schedule);
    if (best.layers > 0 && loss >= least) {
      if (view.kernels() > kLargeGraph) break;
      continue;
    }
    least = loss;
    best = {std::move(cuts), layers};
    if (loss <= Seconds{0}) break;
  }
  return best;
}

Cuts choose_unequal(const StepView& view, const Units& units, const Cuts& equal, Bytes capacity,
                    const ScheduleRules& rules) {
  const Visits visits = make_visits(view, units, equal);
  const Schedule schedule = make_schedule(view, units, visits, capacity, rules);
  return UnequalCuts(view, units, visits, schedule).run();
}

}  // namespace terrace::sentinel

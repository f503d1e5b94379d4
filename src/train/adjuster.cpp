// SPDX-License-Identifier: Apache-2.0
#include "train/adjuster.hpp"

#include <utility>

#include "planners/deeptm/correction.hpp"

namespace terrace {

Adjuster::Adjuster(const Graph& graph, Machine machine, Profile profile, Plan plan, PlanFunction planner,
                   AdjusterOptions options)
    : graph_(graph),
      machine_(std::move(machine)),
      profile_(std::move(profile)),
      plan_(std::move(plan)),
      planner_(std::move(planner)),
      budget_(plan_.budget),
      options_(options) {
  begin_observing();
}

void Adjuster::begin_observing() {
  predicted_ = simulate(graph_, machine_, profile_, plan_);
  first_ = true;
  drifts_.clear();
  measured_.clear();
}

AdjusterOptions adjuster_options(std::string_view planner) {
  AdjusterOptions options;
  if (learns(planner)) options.correction = Correction::each_kernel;
  return options;
}

std::optional<Adjustment> Adjuster::observe(const Timeline& measured) {
  if (std::exchange(first_, false)) return std::nullopt;
  drifts_.push_back(drift_of(machine_, plan_, measured, predicted_));
  if (options_.correction == Correction::each_kernel) measured_.push_back(measured);
  if (drifts_.size() < options_.steps) return std::nullopt;
  const Drift drift = median_of(drifts_);
  if (has_drifted(drift)) return plan_again(drift);
  drifts_.erase(drifts_.begin());
  if (!measured_.empty()) measured_.erase(measured_.begin());
  return std::nullopt;
}

bool Adjuster::has_drifted(const Drift& drift) const {
  if (drift.largest() > options_.tolerance) return true;
  return !measured_.empty() && 1 + unevenness(plan_, median_of(measured_), predicted_) > options_.tolerance;
}

std::optional<Adjustment> Adjuster::plan_again(const Drift& drift) {
  machine_ = corrected(std::move(machine_), drift);
  profile_ = corrected(std::move(profile_), drift, machine_);
  if (!measured_.empty()) profile_ = deeptm::corrected(graph_, profile_, plan_, median_of(measured_));
  auto better = better_plan(drift);
  if (better) plan_ = better->plan.plan();
  begin_observing();
  return better;
}

std::optional<Adjustment> Adjuster::better_plan(const Drift& drift) const {
  auto plan = planner_({graph_, machine_, profile_, budget_});
  if (!plan) return std::nullopt;
  const Seconds before = simulate(graph_, machine_, profile_, plan_).step, after = plan->prediction.step;
  if (after > before * (1 - options_.gain)) return std::nullopt;
  return Adjustment{verify(graph_, machine_, *std::move(plan)).value(), drift, before, after};
}

}  // namespace terrace

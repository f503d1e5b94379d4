// SPDX-License-Identifier: Apache-2.0
#include "planners/advice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "plan/reach.hpp"
#include "terrace/lifetimes.hpp"
#include "terrace/simulate.hpp"

namespace terrace {
namespace {

constexpr double kGigabyte = 1e9;
/// How near the least budget is looked for, as a share of what everything takes.
constexpr double kResolution = 0.01;
/// A plan as fast as was asked for may differ by rounding.
constexpr double kRounding = 1e-9;

Bytes share_of(Bytes amount, double share) {
  return {static_cast<std::uint64_t>(share * static_cast<double>(amount.count))};
}

/// Marks the points that no other beats: none is cheaper and as fast, or faster and as cheap, or equal and
/// earlier.
void mark_frontier(std::vector<AdvicePoint>& points) {
  const bool priced =
      std::all_of(points.begin(), points.end(), [](const AdvicePoint& one) { return one.price.has_value(); });
  const auto cost = [&](const AdvicePoint& one) {
    return priced ? *one.price : static_cast<double>((*one.plan)->budget[0].count);
  };
  for (AdvicePoint& point : points) {
    point.frontier = std::none_of(points.begin(), points.end(), [&](const AdvicePoint& other) {
      if (cost(other) > cost(point) || other.step > point.step) return false;
      return cost(other) < cost(point) || other.step < point.step || &other < &point;
    });
  }
}

}  // namespace

Adviser::Adviser(AdviceRequest request)
    : request_(std::move(request)),
      peak_(Lifetimes(request_.graph).peak_bytes()),
      all_fast_(peak_),
      fast_only_(KernelClock(request_.graph, request_.machine, request_.profile).fast_step()),
      bounds_(asked(request_.budget.at(0)), bounds::Recompute::yes) {
  const auto& tiers = request_.machine.tiers;
  check(request_.budget.size() == tiers.size(), "every tier has its budget");
  check(request_.prices.empty() || request_.prices.size() == tiers.size(), "every tier has its price");
  if (request_.prices.empty()) {
    for (const MachineTier& tier : tiers) request_.prices.push_back(tier.price);
  }
  plan_everything();
}

/// Plans with everything in fast memory. Packing takes a little more than the peak, so several budgets are
/// tried.
void Adviser::plan_everything() {
  for (const std::uint64_t percent : {100, 101, 102, 105, 110, 125}) {
    const Bytes granularity = request_.machine.tiers[0].granularity;
    const Bytes fast = std::min(round_up(peak_ / 100 * percent, granularity), request_.budget[0]);
    auto plan = make_plan("all-fast", asked(fast));
    if (!plan) continue;
    keep(*std::move(plan)).value();
    all_fast_ = plans_.back().taken();
    tried_.push_back({all_fast_, fast_only_});
    everything_fits_ = true;
    return;
  }
}

PlanRequest Adviser::asked(Bytes fast) const {
  PlanRequest made{request_.graph, request_.machine, request_.profile, request_.budget};
  made.budget[0] = fast;
  return made;
}

Result<void> Adviser::keep(Plan plan) {
  trim_budget(request_.graph, request_.machine, plan);
  auto verified = verify(request_.graph, request_.machine, std::move(plan));
  if (!verified) return Error{ErrorCode::inconsistent, verified.error().message};
  const Plan& safe = verified->plan();
  Timeline timeline = simulate(request_.graph, request_.machine, request_.profile, safe);
  plans_.push_back(
      {std::make_shared<const VerifiedPlan>(*std::move(verified)), std::move(timeline.peak), timeline.step});
  return {};
}

Bytes Adviser::most() const { return everything_fits_ ? all_fast_ : request_.budget[0]; }

std::optional<double> Adviser::all_fast_price() const {
  if (!request_.prices[0]) return std::nullopt;
  return *request_.prices[0] * static_cast<double>(peak_.count) / kGigabyte;
}

std::optional<double> Adviser::price(const std::vector<Bytes>& used) const {
  double sum = 0;
  for (std::size_t tier = 0; tier < used.size(); ++tier) {
    if (used[tier] == Bytes{0}) continue;
    if (!request_.prices[tier]) return std::nullopt;
    sum += *request_.prices[tier] * static_cast<double>(used[tier].count) / kGigabyte;
  }
  return sum;
}

Result<void> Adviser::plan_for(Bytes fast) {
  check(fast <= request_.budget[0], "no budget is more than the most");
  if (request_.machine.engine_count() > 1) {
    return Error{ErrorCode::unsupported,
                 "advice compares plans with bounds for one engine, and the machine has several: leave out "
                 "its key 'engines'"};
  }
  if (std::any_of(tried_.begin(), tried_.end(), [&](const Tried& one) { return one.fast == fast; }))
    return {};
  if (const auto before = refused_.find(fast); before != refused_.end()) return before->second;
  Seconds bound = fast_only_;
  if (!everything_fits_ || fast < all_fast_) {
    request_.progress(fast);
    auto plan = make_plan(request_.planner, asked(fast));
    if (!plan) return refused_.emplace(fast, plan.error()).first->second;
    bound = plan->prediction.bound;
    if (auto kept = keep(*std::move(plan)); !kept) return kept.error();
  }
  add_bound(fast, bound);
  return {};
}

/// Adds a bound. Its multipliers may prove more at the other budgets, too, and theirs more at this one.
void Adviser::add_bound(Bytes fast, Seconds bound) {
  const auto place = std::lower_bound(tried_.begin(), tried_.end(), fast,
                                      [](const Tried& one, Bytes than) { return one.fast < than; });
  tried_.insert(place, Tried{fast, bound});
  if (everything_fits_ && fast >= all_fast_) return;
  bounds_.add(fast);
  for (Tried& one : tried_) one.bound = std::max(one.bound, bounds_.at(one.fast).bound);
}

Result<void> Adviser::plan_for_all(std::vector<Bytes> budgets) {
  const Bytes least = least_budget(request_.graph, request_.machine).bytes;
  budgets.insert(budgets.end(), {least, most()});
  Result<void> refused;
  for (const Bytes fast : budgets) {
    if (fast < least || fast > request_.budget[0]) continue;
    if (auto planned = plan_for(fast); !planned) {
      if (planned.error().code == ErrorCode::inconsistent) return planned;
      refused = planned;
    }
  }
  if (!tried_.empty()) return {};
  // Not even the most was tried: it is below the least.
  return refused ? plan_for(request_.budget[0]) : refused;
}

AdvicePoint Adviser::point(Bytes fast) const {
  const Kept* best = nullptr;
  for (const Kept& one : plans_) {
    if (one.taken() > fast) continue;
    if (best == nullptr || std::pair(one.step, one.taken()) < std::pair(best->step, best->taken()))
      best = &one;
  }
  check(best != nullptr, "some plan fits in a budget that was planned for");
  AdvicePoint made{fast, best->plan, best->used, best->step};
  for (const Tried& one : tried_) {
    if (one.fast >= fast) made.bound = std::max(made.bound, one.bound);
  }
  made.slowdown = made.step / fast_only_ - 1;
  made.price = price(made.used);
  return made;
}

std::vector<AdvicePoint> Adviser::curve() const {
  std::vector<AdvicePoint> points;
  for (const Tried& one : tried_) points.push_back(point(one.fast));
  mark_frontier(points);
  return points;
}

const Adviser::Kept* Adviser::smallest_within(Seconds step) const {
  const Kept* best = nullptr;
  for (const Kept& one : plans_) {
    if (one.step <= step && (best == nullptr || one.taken() < best->taken())) best = &one;
  }
  return best;
}

Bytes Adviser::largest_tried_below(Bytes fast) const {
  Bytes largest = least_budget(request_.graph, request_.machine).bytes;
  for (const Tried& one : tried_) {
    if (one.fast < fast) largest = std::max(largest, one.fast);
  }
  for (const auto& [one, why] : refused_) {
    if (one < fast) largest = std::max(largest, one);
  }
  return largest;
}

Result<AdvicePoint> Adviser::least_for(double slowdown) {
  check(slowdown >= 0, "nothing is faster than everything in fast memory");
  if (auto planned = plan_for_all({}); !planned) return planned.error();
  const Seconds step = fast_only_ * (1 + slowdown) * (1 + kRounding);
  const Bytes granularity = request_.machine.tiers[0].granularity;
  const Bytes resolution = std::max(share_of(all_fast_, kResolution), granularity * 2);
  for (;;) {
    const Kept* best = smallest_within(step);
    if (best == nullptr) return out_of_reach(slowdown);
    const Bytes high = best->taken(), low = largest_tried_below(high);
    if (high <= low + resolution) return point(high);
    const Bytes middle = round_up(low + (high - low) / 2, granularity);
    if (auto planned = plan_for(middle); !planned && planned.error().code == ErrorCode::inconsistent)
      return planned.error();
  }
}

Error Adviser::out_of_reach(double slowdown) const {
  const AdvicePoint best = point(most());
  const MachineTier& tier = request_.machine.tiers[0];
  return {
      ErrorCode::too_large,
      fmt::format("no plan by {} in up to {} of {} is within {:.3g}% of full speed: the fastest is {:.3g}% "
                  "slower, and the bound says that none is less than {:.3g}% slower: ask for a larger "
                  "slowdown, or take a machine with more of {}",
                  request_.planner, readable(most()), tier.name, 100 * slowdown, 100 * best.slowdown,
                  100 * std::max(0.0, best.bound / fast_only_ - 1), tier.name)};
}

}  // namespace terrace

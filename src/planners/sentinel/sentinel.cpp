// SPDX-License-Identifier: Apache-2.0
#include "planners/sentinel/sentinel.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "migration/fit.hpp"
#include "planners/sentinel/choice.hpp"
#include "planners/sentinel/options.hpp"
#include "terrace/simulate.hpp"

namespace terrace {
namespace sentinel {

using migration::MigrationWriter;

namespace {

constexpr std::size_t kLargeGraph = 1500;
constexpr std::uint64_t kSparedParts = 256;
/// What a second of a link may cost. Which is right depends on how much of the movement can be hidden, so all
/// are tried where tensors can be used in slow memory.
constexpr double kLinkPrices[] = {0, 0.5, 1};

/// What a plan is made from, beside the request.
struct Recipe {
  Cuts cuts;
  double link_price = 0;
};

class Planning {
 public:
  Planning(const PlanRequest& request, Options options)
      : request_(request),
        options_(std::move(options)),
        view_(request),
        units_(make_units(view_, options_.grouping, ShortLived::apart)),
        large_(request.graph.kernels.size() > kLargeGraph) {}

  Bytes least() const { return least_fast_memory(view_, units_); }

  Result<Plan> run() {
    if (options_.refuse_below && request_.budget[0] < least()) return too_small();
    const Recipe recipe = choose();
    return plan(recipe, options_.end);
  }

  Examination examine() {
    const Recipe recipe = choose();
    Examination found{recipe.cuts, {}, {}, least()};
    const Result<Draft> written = draft(recipe, options_.end, request_.budget[0], &found);
    if (written) return found;
    found.cases.assign(recipe.cuts.size() + 1, Case::done);
    found.waited.assign(found.cases.size(), Seconds{0});
    return found;
  }

 private:
  Error too_small() const {
    return {
        ErrorCode::too_large,
        fmt::format("sentinel wants {} of fast memory, for short-lived tensors and the largest other, and {} "
                    "is given: {} are missing",
                    readable(least()), readable(request_.budget[0]), readable(least() - request_.budget[0]))};
  }

  ScheduleRules rules(double link_price) const {
    return {options_.reserve, options_.in_place, link_price, options_.evict_after_use};
  }

  bool has_choice_of_place() const {
    if (!options_.in_place || large_) return false;
    for (const Unit& unit : units_.all) {
      if (unit.in_place) return true;
    }
    return false;
  }

  /// Chooses intervals before late migrations have their answers, so that trying answers changes nothing
  /// else.
  Recipe choose() const {
    std::vector<Recipe> recipes;
    for (const double price : kLinkPrices) {
      const Bytes capacity = request_.budget[0];
      Cuts cuts = equal(capacity, price);
      if (!cuts.empty() && options_.unequal && options_.interval == 0) {
        recipes.push_back({choose_unequal(view_, units_, cuts, capacity, rules(price)), price});
      }
      recipes.push_back({std::move(cuts), price});
      if (!has_choice_of_place()) break;
    }
    if (recipes.size() == 1) return recipes.front();
    std::size_t best = 0;
    Seconds least{};
    for (std::size_t i = 0; i < recipes.size(); ++i) {
      const Seconds step = large_ ? lost(recipes[i]) : simulated(recipes[i]);
      if (i > 0 && step >= least) continue;
      best = i;
      least = step;
    }
    return recipes[best];
  }

  /// Returns the predicted loss, by which large graphs are judged instead of by simulation.
  Seconds lost(const Recipe& recipe) const {
    const Visits visits = make_visits(view_, units_, recipe.cuts);
    const Schedule schedule =
        make_schedule(view_, units_, visits, request_.budget[0], rules(recipe.link_price));
    return schedule.fits ? predicted_loss(view_, units_, visits, schedule) : Seconds::max();
  }

  Seconds simulated(const Recipe& recipe) const {
    const Result<Plan> made = plan(recipe, {});
    return made ? simulate(request_.graph, request_.machine, view_.clock, *made).step : Seconds::max();
  }

  /// Returns intervals of equal length; none where not even one layer fits.
  Cuts equal(Bytes capacity, double price) const {
    if (options_.interval > 0) return equal_cuts(view_, options_.interval);
    return choose_equal(view_, units_, capacity, rules(price)).cuts;
  }

  Result<Plan> plan(const Recipe& recipe, const IntervalEnd& end) const {
    // Packing may lack a little memory, and planning for that much less may move nothing but tensors so small
    // that the packing stays as it is. So each attempt gives up twice as much as the one before.
    std::uint64_t spared = 0;
    return plan_to_fit(request_, view_.uses, "sentinel", [&](Bytes capacity) {
      const Bytes less = std::min(capacity, request_.budget[0] * spared / kSparedParts);
      spared = spared == 0 ? 1 : 2 * spared;
      return draft(recipe, end, capacity - less, nullptr);
    });
  }

  Result<Draft> draft(const Recipe& recipe, const IntervalEnd& end, Bytes capacity,
                      Examination* found) const {
    if (!recipe.cuts.empty()) {
      const Visits visits = make_visits(view_, units_, recipe.cuts);
      Schedule schedule = make_schedule(view_, units_, visits, capacity, rules(recipe.link_price));
      if (schedule.fits) return write(units_, visits, std::move(schedule), end, capacity, found);
    }
    // In the last resort every kernel is an interval and every tensor moves alone.
    const Units alone = make_units(view_, Grouping::off, ShortLived::as_others);
    const Visits visits = make_visits(view_, alone, kernel_cuts(view_));
    Schedule schedule = make_schedule(view_, alone, visits, capacity, rules(recipe.link_price));
    return write(alone, visits, std::move(schedule), end, capacity, found);
  }

  Result<Draft> write(const Units& units, const Visits& visits, Schedule schedule, const IntervalEnd& end,
                      Bytes capacity, Examination* found) const {
    const auto reserve = options_.contiguous ? migration::Reserve::contiguous : migration::Reserve::anywhere;
    MigrationWriter writer(view_, units, visits, std::move(schedule), capacity, end, options_.order, 1,
                           migration::Stores::when_leaving, reserve);
    auto written = writer.write(large_ ? PackingEffort{0} : kPlanEffort);
    if (found != nullptr) {
      found->cases = writer.cases();
      found->waited = writer.waited();
    }
    return written;
  }

  const PlanRequest& request_;
  Options options_;
  StepView view_;
  Units units_;
  bool large_;
};

}  // namespace

Result<Examination> examine(const PlanRequest& request) {
  auto options = parse_options(request);
  if (!options) return options.error();
  return Planning(request, *std::move(options)).examine();
}

PlanRequest as_published(PlanRequest request) {
  request.options.emplace("in_place", "off");
  request.options.emplace("intervals", "equal");
  return request;
}

}  // namespace sentinel

Result<Plan> plan_sentinel(const PlanRequest& request) {
  return plan_sentinel_plus(sentinel::as_published(request));
}

Result<Plan> plan_sentinel_plus(const PlanRequest& request) {
  auto options = sentinel::parse_options(request);
  if (!options) return options.error();
  return sentinel::Planning(request, *std::move(options)).run();
}

}  // namespace terrace

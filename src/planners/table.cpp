// SPDX-License-Identifier: Apache-2.0
#include "planners/table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "base/similar.hpp"
#include "migration/aggregate.hpp"
#include "migration/hops.hpp"
#include "migration/variant_choice.hpp"
#include "planners/autotm/autotm.hpp"
#include "planners/baselines/active_list.hpp"
#include "planners/baselines/cached_arrays.hpp"
#include "planners/baselines/demand.hpp"
#include "planners/baselines/in_place.hpp"
#include "planners/baselines/prefetch.hpp"
#include "planners/baselines/swapping.hpp"
#include "planners/best/best.hpp"
#include "planners/deeptm/deeptm.hpp"
#include "planners/offload/offload.hpp"
#include "planners/option_values.hpp"
#include "planners/sentinel/sentinel.hpp"
#include "terrace/simulate.hpp"

namespace terrace {
namespace {

/// A workspace below this part of fast memory hardly changes what a plan can do.
constexpr std::uint64_t kSmallWorkspace = 50;

/// Options of every planner: the engine that updates go to, and whether tensors are laid out to travel
/// together.
constexpr std::string_view kUpdates = "updates", kAggregate = "aggregate";
constexpr std::string_view kOfEveryPlanner[] = {kUpdates, kAggregate};

constexpr std::string_view kSentinel = "interval intervals reserve grouping end order in_place evict below";
constexpr std::string_view kAutoTm = "solver gap seconds iterations linking";

constexpr PlannerInfo kPlanners[] = {
    {"best",
     "the fastest, by the simulator, of plans guided by the bound's multipliers, with and without "
     "recomputation, and of other planners' plans",
     plan_best},
    {"prefetch", "evicts the farthest next use; all transfers overlap with kernels and start ahead of time",
     plan_prefetch},
    {"sentinel+",
     "sentinel with intervals of unequal length and use of tensors in slow memory where that is faster",
     plan_sentinel_plus, kSentinel},
    {"sentinel",
     "groups layers into intervals and prefetches the tensors of the next interval during this one, as "
     "published",
     plan_sentinel, kSentinel},
    {"autotm-async", "AutoTM's integer program; tensors also move beside one kernel at a time",
     plan_autotm_async, kAutoTm},
    {"autotm-sync", "AutoTM's integer program; tensors move between kernels, which wait", plan_autotm_sync,
     kAutoTm},
    {"autotm-static", "AutoTM's integer program; every tensor stays in one tier", plan_autotm_static,
     kAutoTm},
    {"deeptm", "DeepTM: an agent learns in the simulator where each tensor goes", plan_deeptm,
     "by weights hotter copies reward beta episodes refine seconds"},
    {"heat",
     "DeepTM's heat: tensors that are used soon and often, are small and short-lived stay in fast memory",
     plan_heat, "by weights hotter copies"},
    {"next-use", "evicts the farthest next use, when room is needed (Belady)", plan_next_use},
    {"lru", "evicts the least recently used tensor, when room is needed", plan_lru},
    {"swapadvisor", "a genetic search over which tensors are evicted and when", plan_swap_advisor,
     "generations"},
    {"capuchin", "swaps tensors whose transfers kernels hide, and recomputes those that are cheap to compute",
     plan_capuchin},
    {"vdnn",
     "evicts the inputs of convolutions after the forward pass and prefetches them for the backward pass",
     plan_vdnn},
    {"l2l",
     "keeps one layer at a time in fast memory: all it uses comes when it begins and leaves when it is over",
     plan_l2l},
    {"ca-lmp", "CachedArrays: operands are brought to fast memory, dead tensors are freed at once",
     plan_cached_arrays_lmp},
    {"ca-lm", "CachedArrays: outputs are brought to fast memory, dead tensors are freed at once",
     plan_cached_arrays_lm},
    {"ca-l", "CachedArrays: outputs are brought to fast memory, dead tensors stay until a collection",
     plan_cached_arrays_l},
    {"ca-none", "CachedArrays: as ca-l, with new tensors created in slow memory", plan_cached_arrays_none},
    {"active-list",
     "tensors used twice become active; after each layer active ones replace inactive ones in fast memory",
     plan_active_list},
    {"first-touch", "a tensor stays where there was room when it was created", plan_first_touch},
    {"all-slow", "everything in the slowest memory that kernels can use", plan_all_slow},
    {"all-fast", "everything in fast memory", plan_all_fast},
};

std::vector<std::string_view> parts_of(std::string_view text, char between) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(between, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

Error no_such(std::string_view what, std::string_view name, const std::vector<std::string_view>& names) {
  const auto closest = similar(name, names);
  return {ErrorCode::invalid_argument, fmt::format("there is no {} '{}': take {}", what, name,
                                                   enumerated(closest.empty() ? names : closest, "or"))};
}

/// The planner with the longest name that the text begins with, up to its end or to an option.
const PlannerInfo* named_at_the_start(std::string_view text) {
  const PlannerInfo* found = nullptr;
  for (const PlannerInfo& planner : kPlanners) {
    const std::string_view rest = text.substr(std::min(planner.name.size(), text.size()));
    if (!text.starts_with(planner.name) || !(rest.empty() || rest.front() == '+')) continue;
    if (found == nullptr || planner.name.size() > found->name.size()) found = &planner;
  }
  return found;
}

enum class Aggregate { on, off };

/// Takes the option out of the request. DeepTM comes with its aggregator (004 section III-C), others without.
Result<Aggregate> take_aggregate(const PlannerInfo& planner, PlanRequest& request) {
  Aggregate aggregate = planner.plan == plan_deeptm ? Aggregate::on : Aggregate::off;
  const auto given = request.options.extract(std::string(kAggregate));
  if (given.empty()) return aggregate;
  const auto parsed = parse_choice<Aggregate>(kAggregate, given.mapped(),
                                              {{"on", Aggregate::on}, {"off", Aggregate::off}}, aggregate);
  if (!parsed) return parsed.error();
  return aggregate;
}

Plan aggregate(const PlanRequest& request, Plan plan) {
  Aggregation made = aggregated(request, std::move(plan));
  if (made.transfers < made.transfers_before) {
    made.plan.remark += fmt::format("{}{} transfers became {}", made.plan.remark.empty() ? "" : "; ",
                                    made.transfers_before, made.transfers);
  }
  return std::move(made.plan);
}

}  // namespace

Result<PlannerChoice> choose_planner(std::string_view text) {
  const PlannerInfo* found = named_at_the_start(text);
  if (found == nullptr) {
    std::vector<std::string_view> names;
    for (const PlannerInfo& planner : kPlanners) names.push_back(planner.name);
    return no_such("planner", text.substr(0, text.find('+')), names);
  }
  // The name may end with what stands between options: `sentinel+`, `sentinel++reserve=off`.
  auto parts = parts_of(text.substr(found->name.size()), '+');
  parts[0] = found->name;
  PlannerChoice choice{found, {}};
  auto known = parts_of(found->options, ' ');
  if (found->options.empty()) known.clear();
  known.insert(known.end(), std::begin(kOfEveryPlanner), std::end(kOfEveryPlanner));
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t equals = std::min(parts[i].find('='), parts[i].size());
    const std::string_view name = parts[i].substr(0, equals);
    const bool is_known = std::find(known.begin(), known.end(), name) != known.end();
    if (found->options.empty() && !is_known)
      return Error{ErrorCode::invalid_argument,
                   fmt::format("planner {} has no options: leave out +{}", found->name, parts[i])};
    if (!is_known) return no_such(fmt::format("option of planner {} named", found->name), name, known);
    if (equals == parts[i].size())
      return Error{
          ErrorCode::invalid_argument,
          fmt::format("option {} of planner {} has no value: write {}=VALUE", name, found->name, name)};
    choice.options[std::string(name)] = parts[i].substr(equals + 1);
  }
  return choice;
}

std::span<const PlannerInfo> planners() { return kPlanners; }

Result<void> check_planner(std::string_view text) {
  const auto choice = choose_planner(text);
  if (!choice) return choice.error();
  return {};
}

Result<Plan> make_plan(std::string_view name, const PlanRequest& request) {
  const auto choice = choose_planner(name);
  if (!choice) return choice.error();
  const auto plan = [&](PlanRequest asked) -> Result<Plan> {
    asked.options.insert(choice->options.begin(), choice->options.end());
    const auto updates = asked.options.extract(std::string(kUpdates));
    const auto aggregates = take_aggregate(*choice->planner, asked);
    if (!aggregates) return aggregates.error();
    auto made = choice->planner->plan(asked);
    if (made && *aggregates == Aggregate::on) made = aggregate(asked, *std::move(made));
    return made && !updates.empty() ? with_updates_on(updates.mapped(), asked, *made) : made;
  };
  return make_plan_by(plan, name, request);
}

Result<Plan> make_plan_by(const std::function<Result<Plan>(const PlanRequest&)>& make, std::string_view name,
                          const PlanRequest& request) {
  check(request.budget.size() == request.machine.tiers.size(), "every tier has its budget");
  const LeastBudget least = least_budget(request.graph, request.machine);
  if (request.budget[0] < least.bytes) {
    return Error{ErrorCode::too_large,
                 fmt::format("{} needs {} of fast memory at once and {} is given: {} are missing",
                             least.kernel ? request.graph[least.kernel].name : "what goes in and comes out",
                             readable(least.bytes), readable(request.budget[0]),
                             readable(least.bytes - request.budget[0]))};
  }
  const auto made = [&](const VariantChoice& variants) {
    auto plan = plan_by_hops(variants.request(), make);
    if (plan) variants.restore(*plan);
    return plan;
  };
  const VariantChoice fastest(request);
  auto plan = made(fastest);
  Timeline timeline;
  if (plan) timeline = simulate(request.graph, request.machine, request.profile, *plan);
  // A small workspace is not worth planning twice.
  if (fastest.spare_workspace() > request.budget[0] / kSmallWorkspace) {
    auto other = made(VariantChoice(request, Prefer::no_workspace));
    if (other) {
      Timeline then = simulate(request.graph, request.machine, request.profile, *other);
      if (!plan || then.step < timeline.step) {
        plan = std::move(other);
        timeline = std::move(then);
      }
    }
  }
  if (!plan) return plan;
  plan->planner = name;
  plan->prediction = {timeline.step, step_bound(request).step, timeline.exposed, timeline.moved};
  return plan;
}

}  // namespace terrace

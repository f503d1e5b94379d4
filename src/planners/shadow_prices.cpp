#include "planners/shadow_prices.hpp"

#include <algorithm>
#include <numeric>

#include "base/check.hpp"
#include "bounds/curve.hpp"
#include "planners/autotm/solver/fast.hpp"
#include "terrace/simulate.hpp"

namespace terrace {
namespace {

constexpr double kGigabyte = 1e9;
/// By how much a link is made faster, of its rate.
constexpr double kFaster = 0.1;

/// Good multipliers are wanted rather than a good placement. The limit of work is for graphs of many
/// thousands of kernels.
autotm::FastOptions solver_options() {
  autotm::FastOptions options;
  options.gap = 1e-4;
  options.iterations = 1500;
  options.work = autotm::kFastWork;
  return options;
}

std::optional<autotm::Formulation> formulation_of(std::string_view planner) {
  if (planner.starts_with("autotm-static")) return autotm::Formulation::fixed;
  if (planner.starts_with("autotm-sync")) return autotm::Formulation::synchronous;
  if (planner.starts_with("autotm-async")) return autotm::Formulation::asynchronous;
  return std::nullopt;
}

bool may_use_slower_memory(const Machine& machine) {
  return std::any_of(machine.tiers.begin() + 1, machine.tiers.end(),
                     [](const MachineTier& tier) { return tier.addressable; });
}

Result<MemoryWorth> by_program(const PlanRequest& request, autotm::Formulation formulation) {
  const auto instance = make_instance(request, formulation, request.budget[0]);
  if (!instance) return instance.error();
  const autotm::FastOptions options = solver_options();
  const auto solved = solve_fast(*instance, options);
  if (!solved) return solved.error();
  const double of_a_byte = std::accumulate(solved->multipliers.begin(), solved->multipliers.end(), 0.0);
  return MemoryWorth{of_a_byte * kGigabyte, solved->bound, PricedBy::program};
}

/// Prices of a little less memory may prove more than those climbed to at this capacity.
MemoryWorth by_bound(const PlanRequest& request, PricedBy by) {
  constexpr double kShares[] = {1, 0.97, 0.9, 0.8, 0.6};
  BoundCurve curve(request, by == PricedBy::any_plan ? bounds::Recompute::yes : bounds::Recompute::no);
  const Bytes fast = request.budget[0];
  for (const double share : kShares)
    curve.add({static_cast<std::uint64_t>(share * static_cast<double>(fast.count))});
  const BoundCurve::Proof proof = curve.at(fast);
  return {proof.seconds_per_byte * kGigabyte, proof.bound, by};
}

bool computes_again(const Graph& graph, const Plan& plan) {
  const auto runs = std::count_if(plan.instructions.begin(), plan.instructions.end(),
                                  [](const Instruction& one) { return std::holds_alternative<Run>(one); });
  return static_cast<std::size_t>(runs) > graph.kernels.size();
}

Machine with_faster_link(Machine machine, std::size_t link) {
  for (SizedRate& sized : machine.links[link].rates) sized.rate.value *= 1 + kFaster;
  return machine;
}

}  // namespace

PricedBy priced_by(const PlanRequest& request, const Plan& plan, std::string_view planner) {
  if (formulation_of(planner) && may_use_slower_memory(request.machine)) return PricedBy::program;
  return computes_again(request.graph, plan) ? PricedBy::any_plan : PricedBy::moving_plan;
}

Result<MemoryWorth> memory_worth(const PlanRequest& request, std::string_view planner, PricedBy by) {
  if (by == PricedBy::program) {
    const auto formulation = formulation_of(planner);
    check(formulation.has_value(), "a planner of AutoTM's has a program");
    return by_program(request, *formulation);
  }
  return by_bound(request, by);
}

std::vector<LinkWorth> link_worths(const PlanRequest& request, const Plan& plan) {
  const Machine& machine = request.machine;
  const KernelClock clock(request.graph, machine, request.profile);  // which asks for tiers, not for links
  const Seconds step = simulate(request.graph, machine, clock, plan).step;
  std::vector<LinkWorth> worths;
  for (std::size_t i = 0; i < machine.links.size(); ++i) {
    const Link& link = machine.links[i];
    const Machine faster = with_faster_link(machine, i);
    const Seconds gained = step - simulate(request.graph, faster, clock, plan).step;
    worths.push_back(
        {link.from, link.to, gained.count() / (kFaster * link.rates.back().rate.value / kGigabyte)});
  }
  return worths;
}

ShadowPrices shadow_prices(const PlanRequest& request, const Plan& plan, std::string_view planner) {
  ShadowPrices prices;
  prices.seconds_per_gigabyte.resize(request.budget.size());
  if (const auto worth = memory_worth(request, planner, priced_by(request, plan, planner))) {
    prices.memory = *worth;
    prices.seconds_per_gigabyte[0] = worth->seconds_per_gigabyte;
  } else {
    prices.reason = worth.error().message;
  }
  for (std::size_t tier = 1; tier < request.budget.size(); ++tier) {
    if (plan.budget[tier] < request.budget[tier]) prices.seconds_per_gigabyte[tier] = 0;
  }
  prices.links = link_worths(request, plan);
  return prices;
}

}  // namespace terrace

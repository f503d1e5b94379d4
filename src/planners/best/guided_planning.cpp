// SPDX-License-Identifier: Apache-2.0
#include "planners/best/guided_planning.hpp"

#include <algorithm>

#include "bounds/ascent.hpp"
#include "migration/fit.hpp"
#include "migration/link_use.hpp"

namespace terrace::best {

using bounds::Passage;
using migration::Schedule;
using migration::Unit;

namespace {

constexpr std::size_t kLargeGraph = 3000;
/// How often a draft is made with less room, until its packed regions fit.
constexpr int kAttempts = 4;
/// How far each sweep trusts the multipliers: the first most, the last looks at true costs alone.
constexpr double kRound[] = {1.1, 1, 1, 0.9, 0.5, 0};
/// Tensors below this share of fast memory are many and matter little: they choose in the first sweep only.
constexpr double kSmall = 1e-5;
/// How much work may go into multipliers and plans, counted in uses of tensors.
constexpr std::uint64_t kPriceWork = 1'000'000, kRoughWork = 400'000, kLeastPrices = 30, kMostPrices = 150;
constexpr std::uint64_t kTryWork = 100'000;
/// Exchanges are left out of large graphs, where few of them find nothing.
constexpr std::uint64_t kExchangeWork = 2'000'000, kLeastExchanges = 100, kMostExchanges = 2000;

bounds::Multipliers prices_of(const bounds::Problem& problem, MultiplierEffort pricing) {
  bounds::Ascent ascent(problem, bounds::Recompute::no);
  const std::uint64_t work = pricing == MultiplierEffort::careful ? kPriceWork : kRoughWork;
  const std::uint64_t uses = std::max<std::uint64_t>(problem.uses.size(), 1);
  ascent.climb(std::clamp(work / uses, kLeastPrices, kMostPrices));
  return ascent.multipliers();
}

/// Every tensor is a unit of its own, but those that lie side by side are one, which never leaves.
migration::Units units_of(const migration::StepView& view, std::span<const TensorId> side_by_side) {
  migration::Units units = make_units(view, migration::Grouping::off, migration::ShortLived::as_others);
  if (side_by_side.empty()) return units;
  Unit together;
  together.persistent = together.fixed = true;
  std::vector<bool> moved(units.all.size());
  for (const TensorId tensor : side_by_side) {
    const Unit& alone = units.all[units.of[tensor.index]];
    moved[units.of[tensor.index]] = true;
    together.tensors.push_back(tensor);
    together.size += alone.size;
    together.touches.insert(together.touches.end(), alone.touches.begin(), alone.touches.end());
  }
  const auto by_kernel = [](const auto& a, const auto& b) { return a.kernel < b.kernel; };
  const auto is_same = [](const auto& a, const auto& b) { return a.kernel == b.kernel; };
  std::sort(together.touches.begin(), together.touches.end(), by_kernel);
  together.touches.erase(std::unique(together.touches.begin(), together.touches.end(), is_same),
                         together.touches.end());
  migration::Units made{{}, units.of};
  for (std::uint32_t u = 0; u < units.all.size(); ++u) {
    if (!moved[u]) made.all.push_back(std::move(units.all[u]));
  }
  made.all.push_back(std::move(together));
  for (std::uint32_t u = 0; u < made.all.size(); ++u) {
    for (const TensorId tensor : made.all[u].tensors) made.of[tensor.index] = u;
  }
  return made;
}

bool stays(const bounds::Arrival& arrival) {
  return arrival.passage == Passage::stays || arrival.passage == Passage::stays_stored;
}

}  // namespace

GuidedPlanning::GuidedPlanning(const PlanRequest& request, MultiplierEffort pricing,
                               std::span<const TensorId> side_by_side)
    : request_(request),
      view_(request),
      units_(units_of(view_, side_by_side)),
      visits_(make_visits(view_, units_, kernel_cuts(view_))),
      problem_(request, view_.clock),
      multipliers_(prices_of(problem_, pricing)),
      copies_(problem_.tensors.size()),
      number_(request.graph.tensors.size(), kNever) {
  for (std::uint32_t t = 0; t < problem_.tensors.size(); ++t) number_[problem_.tensors[t].id.index] = t;
  time_copies();
}

/// Times the copies of each tensor to and from its backing tier.
void GuidedPlanning::time_copies() {
  for (std::size_t t = 0; t < copies_.size(); ++t) {
    const Unit& unit = units_.all[units_.of[problem_.tensors[t].id.index]];
    if (!unit.backing_tier) continue;
    const Machine& machine = request_.machine;
    copies_[t] = {time_beside_kernels(*machine.link({0}, *unit.backing_tier), unit.size).count(),
                  time_beside_kernels(*machine.link(*unit.backing_tier, {0}), unit.size).count()};
  }
}

Placement GuidedPlanning::place(double capacity, const Recipe& recipe) const {
  Placement placement(problem_, copies_, capacity, expected(recipe));
  SplitMix random(recipe.seed);
  for (const double trust : kRound) {
    const bool first = trust == kRound[0];
    placement.sweep(multipliers_, {trust, 1}, recipe.order, random, first ? 0 : kSmall * capacity);
  }
  const std::uint64_t exchanges = kExchangeWork / std::max<std::size_t>(problem_.uses.size(), 1);
  if (recipe.exchanges && exchanges >= kLeastExchanges)
    placement.exchange(std::min(exchanges, kMostExchanges), random);
  return placement;
}

std::uint64_t GuidedPlanning::tries(std::uint64_t most) const {
  return std::clamp<std::uint64_t>(kTryWork / std::max<std::size_t>(problem_.uses.size(), 1), 1, most);
}

Schedule GuidedPlanning::schedule(const Placement& placement, Between between) const {
  Schedule schedule(view_, visits_, units_);
  for (std::uint32_t u = 0; u < units_.all.size(); ++u) {
    add_unit(u, placement, between, schedule);
    book(view_, units_, visits_, u, schedule);
  }
  return schedule;
}

/// A unit is one tensor, and its visits are that tensor's uses.
void GuidedPlanning::add_unit(std::uint32_t u, const Placement& placement, Between between,
                              Schedule& schedule) const {
  const Unit& unit = units_.all[u];
  const std::uint32_t t = number_[unit.tensors.front().index];
  const bool pinned = unit.fixed || (t != kNever && placement.is_pinned(t));
  schedule.from_start[u] = pinned;
  if (t == kNever) return;
  const auto& arrivals = placement.path(t).arrivals;
  // Where kernels can use slower memory, what is not pinned begins and ends the step there.
  const bool returns = between == Between::as_placed && unit.persistent && !pinned && !unit.in_place &&
                       unit.tensors.size() == 1 && arrivals.front().from != bounds::kSlow &&
                       stays(arrivals.back());
  schedule.returns[u] = returns;
  if ((unit.given && !pinned) || returns) schedule.from_start[u] = stays(arrivals.front());
  std::size_t i = 0;
  for (std::uint32_t v = visits_.first[u]; v != kNever; v = visits_.all[v].next, ++i) {
    const bool last = visits_.all[v].next == kNever;
    schedule.in_place[v] = !pinned && unit.in_place && arrivals[i].to == bounds::kSlow;
    schedule.stays[v] = !last && (pinned || (!schedule.in_place[v] && stays(arrivals[i + 1])));
  }
}

Result<Draft> GuidedPlanning::draft(Bytes capacity, const Recipe& recipe) const {
  const bool large = request_.graph.kernels.size() > kLargeGraph;
  const migration::IntervalEnd end;
  const Placement placed = place((1 - recipe.reserve) * static_cast<double>(capacity.count), recipe);
  // Where kernels wait for links anyway, stores go in the order in which tensors leave.
  const auto stores =
      expected(recipe) == Copies::hidden ? migration::Stores::ahead : migration::Stores::when_leaving;
  migration::MigrationWriter writer(view_, units_, visits_, schedule(placed, recipe.between), capacity, end,
                                    migration::FetchOrder::use, view_.kernels(), stores);
  return writer.write(large ? PackingEffort{0} : kPlanEffort);
}

Result<Plan> GuidedPlanning::plan(const Recipe& recipe) const {
  return plan_to_fit(request_, view_.uses, "best", [&](Bytes capacity) { return draft(capacity, recipe); });
}

Result<Draft> GuidedPlanning::draft(const Recipe& recipe) const {
  Bytes capacity = request_.budget[0];
  for (int attempt = 0;; ++attempt) {
    auto made = draft(capacity, recipe);
    if (!made) return made;
    const Bytes more = std::max(made->needed[0], request_.budget[0]) - request_.budget[0];
    if (more == Bytes{} || more >= capacity || attempt == kAttempts) return made;
    // Where kernels use fast memory alone packing is tight, and its loss changes with every draft.
    const bool twice = !problem_.addressable && attempt > 0 && 2 * more < capacity;
    capacity -= twice ? 2 * more : more;
  }
}

}  // namespace terrace::best

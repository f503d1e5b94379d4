// SPDX-License-Identifier: Apache-2.0
#include "planners/deeptm/environment.hpp"

#include <algorithm>

#include "migration/migration_writer.hpp"
#include "migration/synchronous.hpp"

namespace terrace::deeptm {

using migration::Unit;
using migration::Units;
using migration::Visit;

namespace {

/// Beyond this many kernels offsets are packed quickly.
constexpr std::size_t kLargeGraph = 3000;

}  // namespace

Environment::Environment(const PlanRequest& request, const EnvironmentRules& rules)
    : request_(request),
      rules_(rules),
      view_(request),
      units_(make_units(view_, migration::Grouping::off, migration::ShortLived::as_others)),
      visits_(make_visits(view_, units_, kernel_cuts(view_))),
      heat_(make_heat(view_, units_, visits_, request.budget[0], rules.heat)),
      needed_(visits_.all.size()) {
  for (const Unit& unit : units_.all) {
    if (!unit.backing_tier) continue;
    longest_transfer_ = std::max({longest_transfer_, transfer(unit, {0}, *unit.backing_tier),
                                  transfer(unit, *unit.backing_tier, {0})});
  }
  list_decisions();
  find_needed();
}

Seconds Environment::transfer(const Unit& unit, TierId from, TierId to) const {
  return request_.machine.link(from, to)->time(unit.size);
}

void Environment::list_decisions() {
  const auto hottest_first = [&](std::size_t from) {
    std::stable_sort(decisions_.begin() + static_cast<std::ptrdiff_t>(from), decisions_.end(),
                     [](const Decision& a, const Decision& b) { return a.heat > b.heat; });
  };
  for (std::uint32_t u = 0; u < units_.all.size(); ++u) {
    const Unit& unit = units_.all[u];
    if ((unit.persistent || unit.given) && !unit.touches.empty())
      decisions_.push_back({Decision::When::start, u, kNever, heat_.start[u]});
  }
  hottest_first(0);
  for (std::uint32_t k = 0; k <= view_.kernels(); ++k) {
    for (const auto when : {Decision::When::before, Decision::When::after}) {
      const auto& heats = when == Decision::When::before ? heat_.before : heat_.after;
      const std::size_t from = decisions_.size();
      for (std::uint32_t v = visits_.begin[k]; v < visits_.begin[k + 1]; ++v)
        decisions_.push_back({when, visits_.all[v].unit, v, heats[v]});
      hottest_first(from);
    }
  }
  decision_before_.resize(visits_.all.size());
  decision_after_.resize(visits_.all.size());
  for (std::size_t i = 0; i < decisions_.size(); ++i) {
    if (decisions_[i].when == Decision::When::start) continue;
    auto& places = decisions_[i].when == Decision::When::before ? decision_before_ : decision_after_;
    places[decisions_[i].visit] = i;
  }
}

double Environment::idle_heat(std::uint32_t unit, std::uint32_t next, std::uint32_t kernel) const {
  return deeptm::idle_heat(heat_, view_, units_.all[unit], visits_.all[next], kernel, rules_.heat);
}

void Environment::find_needed() {
  std::vector<std::uint32_t> latest(units_.all.size(), kNever);
  std::vector<bool> next_reads(units_.all.size());
  for (std::uint32_t u = 0; u < units_.all.size(); ++u)
    next_reads[u] = view_.uses.first_reads(units_.all[u].tensors.front());
  for (std::uint32_t k = 0; k <= view_.kernels(); ++k) {
    for (const Use& use : view_.uses.of(k)) {
      const std::uint32_t u = units_.of[use.tensor.index];
      latest[u] = latest[u] == kNever ? visits_.first[u] : visits_.all[latest[u]].next;
      needed_[latest[u]] = next_reads[u];
      next_reads[u] = use.next_reads;
    }
  }
}

Result<Draft> Environment::write(const Units& units, migration::Schedule schedule, Bytes capacity,
                                 PackingEffort effort) const {
  const bool beside = rules_.copies == Copies::asynchronous;
  // Whether a late tensor is waited for was decided already.
  const migration::IntervalEnd end{migration::LateRule::wait, {}};
  migration::MigrationWriter writer(view_, units, visits_, std::move(schedule), capacity, end,
                                    migration::FetchOrder::use, beside ? view_.kernels() : 0,
                                    beside ? migration::Stores::ahead : migration::Stores::when_leaving);
  auto draft = writer.write(view_.kernels() > kLargeGraph ? PackingEffort{0} : effort);
  if (draft && !beside) migration::wait_at_once(draft->plan);
  return draft;
}

}  // namespace terrace::deeptm

// SPDX-License-Identifier: Apache-2.0
#include "planners/deeptm/rollout.hpp"

#include <algorithm>

#include "plan/region_size.hpp"

namespace terrace::deeptm {
namespace {

using migration::Visit;

/// 004 section IV-C wants it large: more than any one action can earn.
constexpr double kNoRoom = -5;

std::int64_t bytes_of(const migration::Unit& unit) { return static_cast<std::int64_t>(unit.size.count); }

}  // namespace

Rollout::Rollout(const Environment& environment, Bytes capacity)
    : environment_(environment),
      capacity_(static_cast<std::int64_t>(capacity.count)),
      homed_(environment.units().all.size()),
      room_(environment.request().budget),
      schedule_(environment.view(), environment.visits(), environment.units()),
      slow_(environment.view().kernels() + 1),
      taken_(environment.view().kernels() + 1),
      fast_(homed_.size()),
      stored_(homed_.size()) {
  if (environment.tiers() > 2) own_ = environment.units();
  reserve_what_has_no_choice();
  skip_closed();
}

/// What kernels cannot use in slower memory has its room before all others.
void Rollout::reserve_what_has_no_choice() {
  for (std::uint32_t u = 0; u < homed_.size(); ++u) {
    const Unit& unit = units().all[u];
    if (unit.fixed) {
      schedule_.from_start[u] = fast_[u] = true;
      taken_.add(0, end(), bytes_of(unit));
    } else if (!unit.in_place) {
      if (unit.given) taken_.add(end(), end(), bytes_of(unit));
      reserve_visits(u, bytes_of(unit));
    }
  }
}

void Rollout::reserve_visits(std::uint32_t u, std::int64_t bytes) {
  for (std::uint32_t v = environment_.visits().first[u]; v != kNever; v = visit(v).next)
    taken_.add(visit(v).first, visit(v).last, bytes);
}

bool Rollout::is_pinned(std::uint32_t u) const {
  const Unit& unit = units().all[u];
  return unit.fixed || (unit.persistent && schedule_.from_start[u]);
}

bool Rollout::is_open() const {
  const Decision& now = decision();
  if (is_pinned(now.unit) || !unit().backing_tier) return false;
  switch (now.when) {
    case When::start:
      return true;
    case When::before:
      return !fast_[now.unit] && unit().in_place && kernel() < end();
    case When::after:
      return fast_[now.unit] && !schedule_.in_place[now.visit] && visit(now.visit).next != kNever &&
             kernel() < end();
  }
  return false;
}

/// Answers a decision that has one answer.
void Rollout::close() {
  const Decision& now = decision();
  switch (now.when) {
    case When::start:
      // What has no slower tier is pinned, whether it fits or not.
      if (!is_pinned(now.unit)) go_fast();
      break;
    case When::before:
      if (!fast_[now.unit] && unit().in_place) {
        go_slow(*unit().backing_tier);
      } else {
        fast_[now.unit] = true;
      }
      break;
    case When::after:
      end_use();
      if (visit(now.visit).next == kNever || schedule_.in_place[now.visit]) break;
      if (is_pinned(now.unit)) schedule_.stays[now.visit] = true;
      if (!is_pinned(now.unit)) go_fast();
  }
}

void Rollout::skip_closed() {
  for (; !done() && !is_open(); ++at_) close();
}

/// The kernels during which fast memory holds the tensor if it is decided so, beyond what was reserved. Where
/// it stays until its next use, that is part of the decision.
std::vector<Rollout::Span> Rollout::spans() const {
  const Decision& now = decision();
  const auto until = [&](std::uint32_t next) { return visit(next).first - (unit().in_place ? 0 : 1); };
  const std::uint32_t first = environment_.visits().first[now.unit];
  if (now.when == When::before) return {{kernel(), kernel()}};
  if (now.when == When::after) return {{visit(now.visit).last + 1, until(visit(now.visit).next)}};
  if (!unit().persistent) {
    std::vector<Span> given;
    if (visit(first).first > 0 || unit().in_place) given.push_back({0, until(first)});
    if (unit().in_place) given.push_back({end(), end()});
    return given;
  }
  if (unit().in_place) return {{0, end()}};
  std::vector<Span> gaps;
  std::uint32_t from = 0;
  for (std::uint32_t v = first; v != kNever; v = visit(v).next) {
    if (visit(v).first > from) gaps.push_back({from, visit(v).first - 1});
    from = visit(v).last + 1;
  }
  if (from <= end()) gaps.push_back({from, end()});
  return gaps;
}

bool Rollout::has_room() const {
  const auto spans = this->spans();
  return std::all_of(spans.begin(), spans.end(), [&](const Span& span) {
    return taken_.most(span.first, span.last) + bytes_of(unit()) <= capacity_;
  });
}

void Rollout::go_fast() {
  const Decision& now = decision();
  for (const Span& span : spans()) taken_.add(span.first, span.last, bytes_of(unit()));
  if (now.when == When::start) schedule_.from_start[now.unit] = true;
  if (now.when == When::after) schedule_.stays[now.visit] = true;
  fast_[now.unit] = true;
}

void Rollout::go_slow(TierId tier) {
  const Decision& now = decision();
  choose_home(tier);
  if (now.when == When::before) {
    schedule_.in_place[now.visit] = true;
    const Visit& used = visit(now.visit);
    for (std::uint32_t i = used.touches; i < used.touches_end; ++i)
      slow_[unit().touches[i].kernel] += unit().touches[i].slow;
  }
  stored_[now.unit] = true;
  fast_[now.unit] = false;
}

/// Where there are several slower tiers, the first decision for one of them holds for the step. One that
/// kernels cannot use takes only tensors that they would not use in slower memory anyway.
void Rollout::choose_home(TierId tier) {
  const std::uint32_t u = decision().unit;
  if (own_.all.empty() || homed_[u] || tier == TierId{0}) return;
  homed_[u] = true;
  const Machine& machine = environment_.request().machine;
  Unit& unit = own_.all[u];
  const auto takes = [&](TierId to) {
    return machine.is_linked_both_ways({0}, to) && machine[to].addressable == unit.in_place &&
           unit.size <= room_[to.index];
  };
  if (takes(tier)) migration::set_backing_tier(environment_.view(), own_, u, tier);
  Bytes& room = room_[unit.backing_tier->index];
  room -= std::min(room, unit.size);
}

/// The kernel is over: what it wrote is nowhere but where it wrote it.
void Rollout::end_use() {
  const Decision& now = decision();
  if (visit(now.visit).writes) stored_[now.unit] = !fast_[now.unit];
}

Outcome Rollout::act(TierId tier) {
  if (decision().when == When::after) end_use();
  const bool no_room = tier == TierId{0} && !has_room();
  Outcome outcome{0, no_room ? slower_tier() : tier, no_room};
  outcome.reward = reward(outcome.tier) + (no_room ? kNoRoom : 0);
  outcome.tier == TierId{0} ? go_fast() : go_slow(outcome.tier);
  ++at_;
  skip_closed();
  return outcome;
}

/// What of a transfer the kernels wait for (004 eq. 5).
Seconds Rollout::waited(Seconds transfer) const {
  if (environment_.rules().copies == Copies::synchronous) return transfer;
  const Seconds window = environment_.view().clock.fast({std::min(kernel(), end() - 1)});
  return std::max(transfer - window, Seconds{0});
}

Seconds Rollout::fetch_time() const {
  const std::uint32_t v = decision().when == When::start    ? environment_.visits().first[decision().unit]
                          : decision().when == When::before ? decision().visit
                                                            : visit(decision().visit).next;
  if (!environment_.is_needed(v) || (decision().when == When::before && !stored_[decision().unit]))
    return Seconds{0};
  return waited(environment_.transfer(unit(), *unit().backing_tier, {0}));
}

Seconds Rollout::store_time() const {
  if (decision().when != When::after || stored_[decision().unit]) return Seconds{0};
  if (!environment_.is_needed(visit(decision().visit).next)) return Seconds{0};
  return waited(environment_.transfer(unit(), {0}, *unit().backing_tier));
}

/// The seconds that an action adds to the step; for what leaves, its store and the cheaper of coming back and
/// of being used where it is.
Seconds Rollout::cost(TierId tier) const {
  const auto& view = environment_.view();
  if (tier == TierId{0}) return decision().when == When::before ? fetch_time() : Seconds{0};
  if (decision().when == When::before) return slowdown(view, units(), visit(decision().visit), slow_);
  const std::uint32_t next = decision().when == When::start ? environment_.visits().first[decision().unit]
                                                            : visit(decision().visit).next;
  Seconds again = fetch_time();
  if (unit().in_place) again = std::min(again, slowdown(view, units(), visit(next), slow_));
  return store_time() + again;
}

double Rollout::reward(TierId tier) const {
  const auto& view = environment_.view();
  if (environment_.rules().reward == Reward::time)
    return -cost(tier).count() * view.kernels() / std::max(view.clock.fast_step().count(), 1e-12);
  const double longest = std::max(environment_.longest_transfer().count(), 1e-12);
  if (tier != TierId{0}) return -store_time().count() / longest;
  if (decision().when != When::before) return 0;
  Bytes used{};
  for (const Use& use : view.uses.of(kernel())) used += environment_.request().graph[use.tensor].bytes;
  const double share =
      used.count > 0 ? static_cast<double>(unit().size.count) / static_cast<double>(used.count) : 0;
  return std::min(share, 1.0) - fetch_time().count() / longest;
}

void Rollout::observe(std::vector<float>& state) const {
  const Decision& now = decision();
  const auto& view = environment_.view();
  const bool is_new = now.when == When::before && !environment_.is_needed(now.visit) && !stored_[now.unit];
  const double mean = view.clock.fast_step().count() / std::max(view.kernels(), 1U);
  const auto relative = [&](Seconds cost) {
    return static_cast<float>(std::min(cost.count() / std::max(mean, 1e-12), 4.0));
  };
  state.clear();
  state.push_back(is_new ? -1.0F : fast_[now.unit] ? 0.0F : 1.0F);
  state.push_back(static_cast<float>(std::clamp(now.heat, -4.0, 4.0)));
  const auto left = static_cast<double>(capacity_ - taken_.most(kernel(), kernel()));
  state.push_back(static_cast<float>(left / static_cast<double>(std::max<std::int64_t>(capacity_, 1))));
  for (std::uint32_t tier = 1; tier < environment_.tiers(); ++tier) {
    const auto budget = static_cast<double>(environment_.request().budget[tier].count);
    state.push_back(static_cast<float>(static_cast<double>(room_[tier].count) / std::max(budget, 1.0)));
  }
  state.push_back(now.when == When::before ? 1.0F : now.when == When::after ? -1.0F : 0.0F);
  state.push_back(static_cast<float>(kernel()) / static_cast<float>(std::max(view.kernels(), 1U)));
  state.push_back(relative(cost(TierId{0})));
  state.push_back(relative(cost(*unit().backing_tier)));
}

Result<Draft> Rollout::write(PackingEffort effort) const {
  migration::Schedule schedule = schedule_;
  for (std::uint32_t u = 0; u < homed_.size(); ++u)
    book(environment_.view(), units(), environment_.visits(), u, schedule);
  return environment_.write(units(), std::move(schedule), Bytes{static_cast<std::uint64_t>(capacity_)},
                            effort);
}

}  // namespace terrace::deeptm

// SPDX-License-Identifier: Apache-2.0
#include "planners/deeptm/rollout.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "plan/region_size.hpp"

namespace terrace::deeptm {
namespace {

using migration::Visit;

/// 004 section IV-C wants it large: more than any one action can earn.
constexpr double kNoRoom = -5;

/// How many idle tensors are asked at most to make room for one: enough for all that is much smaller.
constexpr std::size_t kMostLeaving = 64;

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
  if (!done()) find_room();
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

bool Rollout::fits(const std::vector<Span>& spans) const {
  return std::all_of(spans.begin(), spans.end(), [&](const Span& span) {
    return taken_.most(span.first, span.last) + bytes_of(unit()) <= capacity_;
  });
}

/// The kernels during which a tensor waits in fast memory for its next use.
Rollout::Span Rollout::idle_span(std::uint32_t v) const {
  const Visit& next = visit(visit(v).next);
  return {visit(v).last + 1, next.first - (units().all[next.unit].in_place ? 0 : 1)};
}

/// Whether what stayed after a visit is only read by the kernel that is decided about, which could read it in
/// slower memory.
bool Rollout::is_read_now(std::uint32_t v) const {
  const Visit& next = visit(visit(v).next);
  return next.first == kernel() && decision().when == When::before && next.unit != decision().unit &&
         !next.writes && units().all[next.unit].in_place;
}

/// The tensors that may leave for what is decided now: for one that is used now all that are idle and then
/// what its kernel only reads, for one that wants to stay what is idle and colder.
std::vector<std::uint32_t> Rollout::coldest_first() {
  std::erase_if(
      idle_, [&](std::uint32_t v) { return !schedule_.stays[v] || visit(visit(v).next).first < kernel(); });
  const bool stays = decision().when == When::after;
  const std::uint32_t moment = kernel() + (stays ? 1 : 0);
  const auto heat_of = [&](std::uint32_t v) {
    return environment_.idle_heat(visit(v).unit, visit(v).next, moment);
  };
  const double limit = stays ? heat_of(decision().visit) : std::numeric_limits<double>::infinity();
  std::vector<std::tuple<bool, double, std::uint32_t>> by_heat;
  for (const std::uint32_t v : idle_) {
    const bool is_idle = visit(visit(v).next).first > kernel();
    if (!is_idle && !is_read_now(v)) continue;
    if (const double heat = heat_of(v); heat < limit) by_heat.emplace_back(!is_idle, heat, v);
  }
  const std::size_t most = std::min(by_heat.size(), kMostLeaving);
  std::partial_sort(by_heat.begin(), by_heat.begin() + static_cast<std::ptrdiff_t>(most), by_heat.end());
  std::vector<std::uint32_t> coldest;
  for (std::size_t i = 0; i < most; ++i) coldest.push_back(std::get<std::uint32_t>(by_heat[i]));
  return coldest;
}

/// Finds out whether what is decided now has room, and who would have to leave for it.
void Rollout::find_room() {
  leaving_.clear();
  const auto spans = this->spans();
  has_room_ = fits(spans);
  if (has_room_ || decision().when == When::start) return;
  const auto take = [&](std::uint32_t v, std::int64_t sign) {
    const Span span = idle_span(v);
    taken_.add(span.first, span.last, sign * bytes_of(units().all[visit(v).unit]));
  };
  for (const std::uint32_t v : coldest_first()) {
    take(v, -1);
    leaving_.push_back(v);
    if ((has_room_ = fits(spans))) break;
  }
  // The hottest of them stay where the others made room enough.
  std::vector<std::uint32_t> needed;
  for (; !leaving_.empty(); leaving_.pop_back()) {
    take(leaving_.back(), 1);
    if (!has_room_ || fits(spans)) continue;
    take(leaving_.back(), -1);
    needed.push_back(leaving_.back());
  }
  for (const std::uint32_t v : needed) take(v, 1);
  leaving_ = std::move(needed);
}

/// What stayed after a visit left then instead.
void Rollout::leave(std::uint32_t v, Outcome& outcome) {
  const std::uint32_t u = visit(v).unit, next = visit(v).next;
  const Span span = idle_span(v);
  taken_.add(span.first, span.last, -bytes_of(units().all[u]));
  schedule_.stays[v] = false;
  choose_home(u, *units().all[u].backing_tier);
  stored_[u] = true;
  fast_[u] = false;
  const TierId home = *units().all[u].backing_tier;
  outcome.left.push_back({environment_.decision_after(v), home});
  // Where the kernel's use of it is still to be decided, it will be asked about.
  if (!is_read_now(v) || environment_.decision_before(next) > at_) return;
  use_in_place(next);
  outcome.left.push_back({environment_.decision_before(next), home});
}

/// Kernels use the unit in its slower tier.
void Rollout::use_in_place(std::uint32_t v) {
  schedule_.in_place[v] = true;
  const Unit& used = units().all[visit(v).unit];
  for (std::uint32_t i = visit(v).touches; i < visit(v).touches_end; ++i)
    slow_[used.touches[i].kernel] += used.touches[i].slow;
}

void Rollout::go_fast() {
  const Decision& now = decision();
  for (const Span& span : spans()) taken_.add(span.first, span.last, bytes_of(unit()));
  if (now.when == When::start) schedule_.from_start[now.unit] = true;
  if (now.when == When::after) {
    schedule_.stays[now.visit] = true;
    if (unit().backing_tier && kernel() < end()) idle_.push_back(now.visit);
  }
  fast_[now.unit] = true;
}

void Rollout::go_slow(TierId tier) {
  const Decision& now = decision();
  choose_home(now.unit, tier);
  if (now.when == When::before) use_in_place(now.visit);
  stored_[now.unit] = true;
  fast_[now.unit] = false;
}

/// Where there are several slower tiers, the first decision for one of them holds for the step. One that
/// kernels cannot use takes only tensors that they would not use in slower memory anyway.
void Rollout::choose_home(std::uint32_t u, TierId tier) {
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
  Outcome outcome{0, no_room ? slower_tier() : tier, no_room, {}};
  outcome.reward = reward(outcome.tier) + (no_room ? kNoRoom : 0);
  if (outcome.tier == TierId{0})
    for (const std::uint32_t v : leaving_) leave(v, outcome);
  outcome.tier == TierId{0} ? go_fast() : go_slow(outcome.tier);
  ++at_;
  skip_closed();
  return outcome;
}

/// What of a transfer the kernels wait for. 004 eq. 5 hides it behind the one kernel of its moment. Transfers
/// start ahead of that here, and what they take is what others on the same link cannot have: a reward of time
/// counts it whole, beside kernels or not.
Seconds Rollout::waited(Seconds transfer) const {
  const EnvironmentRules& rules = environment_.rules();
  if (rules.copies == Copies::synchronous || rules.reward == Reward::time) return transfer;
  const Seconds window = environment_.view().clock.fast({std::min(kernel(), end() - 1)});
  return std::max(transfer - window, Seconds{0});
}

/// What bringing what is used now takes. pre: it is about to be used
Seconds Rollout::fetch_time() const {
  if (!environment_.is_needed(decision().visit) || !stored_[decision().unit]) return Seconds{0};
  return waited(environment_.transfer(unit(), *unit().backing_tier, {0}));
}

/// What storing a tensor that leaves after a visit takes.
Seconds Rollout::store_time(std::uint32_t v) const {
  const std::uint32_t u = visit(v).unit;
  if (stored_[u] || !environment_.is_needed(visit(v).next)) return Seconds{0};
  return waited(environment_.transfer(units().all[u], {0}, *units().all[u].backing_tier));
}

/// What a visit costs a tensor that is not in fast memory: the cheaper of coming back and of being used where
/// it is.
Seconds Rollout::return_time(std::uint32_t v) const {
  const Unit& unit = units().all[visit(v).unit];
  Seconds again{0};
  if (environment_.is_needed(v)) again = waited(environment_.transfer(unit, *unit.backing_tier, {0}));
  if (unit.in_place) again = std::min(again, slowdown(environment_.view(), units(), visit(v), slow_));
  return again;
}

/// What those that make room for the decision cost.
Seconds Rollout::room_time() const {
  Seconds sum{0};
  for (const std::uint32_t v : leaving_) {
    const std::uint32_t next = visit(v).next;
    sum += store_time(v) +
           (is_read_now(v) ? slowdown(environment_.view(), units(), visit(next), slow_) : return_time(next));
  }
  return sum;
}

Seconds Rollout::cost(TierId tier) const {
  const Decision& now = decision();
  if (tier == TierId{0}) return room_time() + (now.when == When::before ? fetch_time() : Seconds{0});
  if (now.when == When::before) return slowdown(environment_.view(), units(), visit(now.visit), slow_);
  if (now.when == When::start) return return_time(environment_.visits().first[now.unit]);
  return store_time(now.visit) + return_time(visit(now.visit).next);
}

double Rollout::reward(TierId tier) const {
  const auto& view = environment_.view();
  const Decision& now = decision();
  if (environment_.rules().reward == Reward::time)
    return -cost(tier).count() * view.kernels() / std::max(view.clock.fast_step().count(), 1e-12);
  const double longest = std::max(environment_.longest_transfer().count(), 1e-12);
  if (tier != TierId{0}) return now.when == When::after ? -store_time(now.visit).count() / longest : 0;
  Seconds moved = now.when == When::before ? fetch_time() : Seconds{0};
  for (const std::uint32_t v : leaving_) moved += store_time(v);
  if (now.when != When::before) return -moved.count() / longest;
  Bytes used{};
  for (const Use& use : view.uses.of(kernel())) used += environment_.request().graph[use.tensor].bytes;
  const double share =
      used.count > 0 ? static_cast<double>(unit().size.count) / static_cast<double>(used.count) : 0;
  return std::min(share, 1.0) - moved.count() / longest;
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

// SPDX-License-Identifier: Apache-2.0
#include "bounds/path.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace terrace::bounds {
namespace {

constexpr double kRoundingOfShares = 1e-9;
constexpr double kNot = std::numeric_limits<double>::infinity();

}  // namespace

Multipliers::Multipliers(const Problem& problem)
    : memory(problem.kernels.size()),
      operand(problem.operands.size()),
      out(problem.blocks()),
      in(problem.blocks()),
      pause_out(problem.blocks(), 1.0),
      pause_in(problem.blocks(), 1.0) {
  limit(problem);
  // At first multipliers are such that no kernel gains by having an operand in slower memory.
  for (const BoundKernel& kernel : problem.kernels) {
    for (std::uint32_t i = kernel.operands; i < kernel.operands_end; ++i)
      operand[i] = std::max(0.0, problem.operands[i].seconds - kernel.fast);
  }
}

/// One direction alone is busy all the time at most; both at once have the share of their rates that is left.
double Multipliers::weight(const Problem& problem, std::uint32_t block, Part part) const {
  const double one = part == Part::run ? out[block] : pause_out[block];
  const double other = part == Part::run ? in[block] : pause_in[block];
  return std::max({one, other, problem.out.both * one + problem.in.both * other});
}

void Multipliers::limit(const Problem& problem) {
  for (std::uint32_t b = 0; b < problem.blocks(); ++b) {
    const double run = weight(problem, b, Part::run), pause = weight(problem, b, Part::pause);
    if (run > 1) out[b] /= run, in[b] /= run;
    if (pause > 1) pause_out[b] /= pause, pause_in[b] /= pause;
  }
}

UnitCosts::UnitCosts(const Problem& problem, const Multipliers& multipliers) {
  until.push_back(0);
  for (const double price : multipliers.memory) until.push_back(until.back() + price);
  const auto left = [&](std::uint32_t b, Part part) {
    const double rest = 1 - multipliers.weight(problem, b, part);
    check(rest > -kRoundingOfShares, "links take up no more than all of a block's time");
    return std::max(rest, 0.0);  // below zero, recomputation would seem to gain time
  };
  const auto copy = [&](double price, const Direction& way, double rest) {
    return problem.linked ? price * way.busy + rest * way.cost : kNot;
  };
  for (std::uint32_t b = 0; b < problem.blocks(); ++b) {
    weight.push_back(left(b, Part::run));
    pause_weight.push_back(left(b, Part::pause));
    least_weight = std::min(least_weight, pause_weight[b]);
    out.push_back(copy(multipliers.out[b], problem.out, weight[b]));
    in.push_back(copy(multipliers.in[b], problem.in, weight[b]));
    pause_out.push_back(copy(multipliers.pause_out[b], problem.out, pause_weight[b]));
    pause_in.push_back(copy(multipliers.pause_in[b], problem.in, pause_weight[b]));
  }
}

Crossings::Crossings(const Interim& interim) {
  Crossing fast, both, slow;
  fast.offer(interim.recompute.cost, Passage::recomputed);
  to_[kFast].fill(fast);
  Crossing& stays = to_[kFast][kFast];
  stays = {};
  stays.offer(interim.stay, Passage::stays);
  stays.offer(interim.recompute.cost, Passage::recomputed);

  both.offer(interim.recompute_slow.cost + interim.in.cost, Passage::recomputed_comes);
  both.offer(interim.recompute.cost + interim.stored.cost, Passage::recomputed_stored);
  to_[kBoth].fill(both);
  to_[kBoth][kFast].offer(interim.stay + interim.recompute_slow.cost, Passage::stays_recomputed);
  to_[kBoth][kFast].offer(interim.stay + interim.stored.cost, Passage::stays_stored);
  to_[kBoth][kFast].offer(interim.out.cost + interim.in.cost, Passage::goes_round);
  to_[kBoth][kBoth].offer(interim.stay, Passage::stays);
  for (const Location from : {kBoth, kSlow}) {
    to_[kBoth][from].offer(interim.in.cost, Passage::comes);
    to_[kBoth][from].offer(interim.recompute.cost, Passage::recomputed);
  }

  slow.offer(0, Passage::rests);
  to_[kSlow].fill(slow);
  Crossing& leaves = to_[kSlow][kFast];
  leaves = {};
  leaves.offer(interim.out.cost, Passage::leaves);
  for (Crossing& crossing : to_[kSlow]) crossing.offer(interim.recompute_slow.cost, Passage::recomputed);
}

void Paths::add_interim(const Begin& begin, std::uint32_t until, const UnitCosts& unit_costs) {
  Interim& interim = best_.interims.emplace_back();
  interim.first = begin.first;
  interim.end = until;
  interim.stay = unit_costs.hold(begin.first, until);
  interim.stored = interim.out = begin.stored;
  interim.weight = begin.weight;
  interim.recomputation = begin.recomputation;
  interim.out.moment = begin.first;
  leave(begin, until, unit_costs, interim);
  come(begin, until, unit_costs, interim);
  if (begin.recomputation.seconds < kNot) {
    const Recomputation& recomputation = begin.recomputation;
    const double there = interim.weight.cost * recomputation.slow_seconds;
    const double copied = interim.weight.cost * recomputation.seconds + interim.stored.cost;
    interim.recompute_slow = {std::min(there, copied) + recomputation.before, interim.weight.block, until, 0};
    interim.recompute_is_copied = copied < there;
  }
  crossings_.emplace_back(interim);
}

/// What is copied out beside a kernel takes memory while that kernel runs.
void Paths::leave(const Begin& begin, std::uint32_t until, const UnitCosts& unit_costs,
                  Interim& interim) const {
  const std::uint32_t first = problem_.block_of[begin.first], last = problem_.block_of[until];
  const auto enter_of = [&](std::uint32_t b) { return std::max(begin.first, problem_.block_begin[b]); };
  for (std::uint32_t b = first; b <= last; ++b) {
    if (unit_costs.pause_out[b] < interim.stored.cost)
      interim.stored = {unit_costs.pause_out[b], b, until, 0};
    if (unit_costs.out[b] < interim.stored.cost && enter_of(b) < until)
      interim.stored = {unit_costs.out[b], b, until, 1};
  }
  if (begin.recomputation.seconds < kNot) {
    for (std::uint32_t b = first; b <= last; ++b)
      interim.weight.offer({unit_costs.pause_weight[b], b, until, 0});
  }
  for (std::uint32_t b = first; b <= last; ++b) {
    const std::uint32_t enter = enter_of(b);
    const double held = unit_costs.hold(begin.first, enter);
    if (held >= interim.out.cost) break;  // memory costs no less until later
    interim.out.offer({held + unit_costs.pause_out[b], b, enter, 0});
    if (held + unit_costs.out[b] >= interim.out.cost) continue;
    double beside = 0;
    for (std::uint32_t gone = enter + 1; gone <= until && beside < 1; ++gone) {
      beside = unit_costs.pace.done(unit_costs.pace.out, enter, gone);
      const double copy = beside * unit_costs.out[b] + (1 - beside) * unit_costs.pause_out[b];
      interim.out.offer({unit_costs.hold(begin.first, gone) + copy, b, gone, beside});
    }
  }
}

void Paths::come(const Begin& begin, std::uint32_t until, const UnitCosts& unit_costs,
                 Interim& interim) const {
  const Recomputation& recomputation = begin.recomputation;
  const std::uint32_t last = problem_.block_of[until];
  const auto pause = [&](std::uint32_t b, std::uint32_t there) {
    const double held = unit_costs.hold(there, until);
    interim.in.offer({held + unit_costs.pause_in[b], b, there, 0});
    if (recomputation.seconds == kNot) return;
    interim.recompute.offer(
        {held + unit_costs.pause_weight[b] * recomputation.seconds + recomputation.before, b, there, 0});
  };
  pause(last, until);
  for (std::uint32_t b = last + 1; b-- > problem_.block_of[begin.can_come];) {
    const std::uint32_t end = std::min(problem_.block_begin[b + 1], until);
    if (end <= begin.can_come) continue;
    const double held = unit_costs.hold(end - 1, until);
    if (held >= interim.in.cost && (recomputation.seconds == kNot || held >= interim.recompute.cost)) break;
    double beside = held + unit_costs.in[b] < interim.in.cost ? 0 : 1;
    for (std::uint32_t there = end; there-- > begin.can_come && beside < 1;) {
      beside = unit_costs.pace.done(unit_costs.pace.in, there, end);
      const double copy = beside * unit_costs.in[b] + (1 - beside) * unit_costs.pause_in[b];
      interim.in.offer({unit_costs.hold(there, until) + copy, b, there, beside});
    }
    if (b < last && end > begin.first) pause(b, end - 1);
  }
}

/// `before`: what recomputing the value takes that the use finds.
Recomputation Paths::make(const BoundTensor& tensor, const BoundUse& use, const Recomputation& before,
                          const UnitCosts& unit_costs) const {
  Recomputation recomputation{use.recompute / tensor.bytes, use.recompute_slow / tensor.bytes};
  if (!use.reads || problem_.addressable) return recomputation;
  recomputation.before =
      before.seconds == kNot ? kNot : unit_costs.least_weight * before.seconds + before.before;
  recomputation.before_seconds = before.seconds + before.before_seconds;
  recomputation.copies = before.copies;
  if (recomputation.before <= best_.cheapest_in.cost) return recomputation;
  recomputation.before = best_.cheapest_in.cost;
  recomputation.before_seconds = 0;
  recomputation.copies = true;
  return recomputation;
}

void Paths::find_interims(const BoundTensor& tensor, const UnitCosts& unit_costs, Recompute recompute) {
  best_.interims.clear();
  crossings_.clear();
  best_.cheapest_in = {};
  if (recompute == Recompute::yes) {
    for (std::uint32_t b = 0; b < problem_.blocks(); ++b) {
      best_.cheapest_in.offer({unit_costs.in[b], b, 0, 1});
      best_.cheapest_in.offer({unit_costs.pause_in[b], b, 0, 0});
    }
  }
  Begin begin;
  for (std::uint32_t i = tensor.uses; i <= tensor.uses_end; ++i) {
    const bool last = i == tensor.uses_end;
    add_interim(begin, last ? problem_.moments() : problem_.uses[i].kernel, unit_costs);
    if (last) break;
    const BoundUse& use = problem_.uses[i];
    begin.stored = best_.interims.back().stored;
    begin.weight = best_.interims.back().weight;
    begin.first = std::min(use.kernel + 1, problem_.moments());
    begin.can_come = use.writes ? begin.first : use.kernel;
    if (use.kernel == problem_.moments()) continue;
    if (!use.writes) {
      const std::uint32_t b = problem_.block_of[use.kernel];
      begin.stored.offer({unit_costs.out[b], b, 0, 1});
      continue;
    }
    begin.stored = begin.weight = {};
    if (recompute == Recompute::yes) begin.recomputation = make(tensor, use, begin.recomputation, unit_costs);
  }
}

Paths::Costs Paths::use(const BoundTensor& tensor, const BoundUse& use, const Costs& before,
                        const Crossings& crossings, const Multipliers& multipliers,
                        const UnitCosts& unit_costs, Arrivals& arrivals) const {
  Costs after{kNot, kNot, kNot};
  const bool is_end = use.kernel == problem_.moments();
  const double fast = is_end ? 0 : unit_costs.hold(use.kernel, use.kernel + 1);
  const double slow = use.operand == kNever ? 0 : multipliers.operand[use.operand] / tensor.bytes;
  const auto arrive = [&](double cost, Arrival arrival) {
    if (arrival.to == kSlow && !use.slow) return;
    cost += arrival.to == kSlow ? slow : fast;
    const Location then = use.writes && arrival.to == kBoth ? kFast : arrival.to;
    if (cost >= after[then]) return;
    after[then] = cost;
    arrivals[then] = arrival;
  };
  for (const Location from : {kFast, kBoth, kSlow}) {
    if (before[from] == kNot) continue;
    if (!use.reads) {
      for (const Location to : {kFast, kSlow}) arrive(before[from], {Passage::overwritten, from, to});
      continue;
    }
    for (const Location to : {kFast, kBoth, kSlow}) {
      const Crossing& crossing = crossings(from, to);
      arrive(before[from] + crossing.cost, {crossing.passage, from, to});
    }
  }
  return after;
}

void Paths::trace(std::size_t uses, Location last) {
  best_.arrivals.resize(uses);
  for (std::size_t i = uses; i-- > 0;) {
    best_.arrivals[i] = arrivals_[i][last];
    last = best_.arrivals[i].from;
  }
}

/// Starts at every location with a finite cost; a persistent tensor has to end where it started.
void Paths::try_start(const BoundTensor& tensor, const Costs& start, const Multipliers& multipliers,
                      const UnitCosts& unit_costs) {
  const std::size_t uses = tensor.uses_end - tensor.uses;
  arrivals_.resize(uses);
  Costs costs = start;
  for (std::size_t i = 0; i < uses; ++i) {
    costs = use(tensor, problem_.uses[tensor.uses + i], costs, crossings_[i], multipliers, unit_costs,
                arrivals_[i]);
  }
  for (const Location last : {kFast, kBoth, kSlow}) {
    if (!tensor.persistent) {
      if (costs[last] * tensor.bytes >= best_.cost) continue;
      best_.cost = costs[last] * tensor.bytes;
      trace(uses, last);
      continue;
    }
    for (const Location end : {kFast, kBoth, kSlow}) {
      // A tensor that starts in one location may as well end in both.
      if (start[end] == kNot && end != kBoth) continue;
      const Crossing& crossing = crossings_[uses](last, end);
      const double price = (costs[last] + crossing.cost) * tensor.bytes;
      if (price >= best_.cost) continue;
      best_.cost = price;
      trace(uses, last);
      best_.arrivals.push_back({crossing.passage, last, end});
    }
  }
}

const TensorPath& Paths::cheapest(const BoundTensor& tensor, const Multipliers& multipliers,
                                  const UnitCosts& unit_costs, Recompute recompute) {
  find_interims(tensor, unit_costs, recompute);
  best_.cost = kNot;
  best_.arrivals.clear();
  if (!tensor.persistent) {
    const bool anywhere = !tensor.given || problem_.addressable;
    try_start(tensor, {0, tensor.given ? kNot : 0, anywhere ? 0 : kNot}, multipliers, unit_costs);
    return best_;
  }
  for (const Location begin : {kFast, kBoth, kSlow}) {
    Costs start{kNot, kNot, kNot};
    start[begin] = 0;
    try_start(tensor, start, multipliers, unit_costs);
  }
  return best_;
}

}  // namespace terrace::bounds

#include "bounds/path.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace terrace::bounds {
namespace {

constexpr double kRounding = 1e-9;
constexpr double kNot = std::numeric_limits<double>::infinity();

/// The cheapest passage from one place to another.
struct Crossing {
  double price = kNot;
  Passage passage = Passage::overwritten;

  void offer(double other, Passage by) {
    if (other < price) price = other, passage = by;
  }
};

Crossing cross(const Gap& gap, Place from, Place to) {
  Crossing best;
  if (to == kFast) {
    if (from == kFast) best.offer(gap.stay, Passage::stays);
    best.offer(gap.again.price, Passage::made_again);
  } else if (to == kBoth) {
    best.offer(gap.again_slow.price + gap.in.price, Passage::made_again_comes);
    best.offer(gap.again.price + gap.stored.price, Passage::made_again_stored);
    if (from == kFast) {
      best.offer(gap.stay + gap.again_slow.price, Passage::stays_made_again);
      best.offer(gap.stay + gap.stored.price, Passage::stays_stored);
      best.offer(gap.out.price + gap.in.price, Passage::goes_round);
    } else {
      if (from == kBoth) best.offer(gap.stay, Passage::stays);
      best.offer(gap.in.price, Passage::comes);
      best.offer(gap.again.price, Passage::made_again);
    }
  } else {
    from == kFast ? best.offer(gap.out.price, Passage::leaves) : best.offer(0, Passage::rests);
    best.offer(gap.again_slow.price, Passage::made_again);
  }
  return best;
}

}  // namespace

Prices::Prices(const Problem& problem)
    : memory(problem.kernels.size()),
      operand(problem.operands.size()),
      out(problem.blocks()),
      in(problem.blocks()),
      pause_out(problem.blocks(), 1.0),
      pause_in(problem.blocks(), 1.0) {
  limit(problem);
  // So that no kernel gains by having an operand in slower memory.
  for (const BoundKernel& kernel : problem.kernels) {
    for (std::uint32_t i = kernel.operands; i < kernel.operands_end; ++i)
      operand[i] = std::max(0.0, problem.operands[i].seconds - kernel.fast);
  }
}

/// One direction alone is busy all the time at most; both have their shares of the rates at once.
double Prices::weight(const Problem& problem, std::uint32_t block, Part part) const {
  const double one = part == Part::run ? out[block] : pause_out[block];
  const double other = part == Part::run ? in[block] : pause_in[block];
  return std::max({one, other, problem.out.both * one + problem.in.both * other});
}

void Prices::limit(const Problem& problem) {
  for (std::uint32_t b = 0; b < problem.blocks(); ++b) {
    const double run = weight(problem, b, Part::run), pause = weight(problem, b, Part::pause);
    if (run > 1) out[b] /= run, in[b] /= run;
    if (pause > 1) pause_out[b] /= pause, pause_in[b] /= pause;
  }
}

Priced::Priced(const Problem& problem, const Prices& prices) {
  until.push_back(0);
  for (const double price : prices.memory) until.push_back(until.back() + price);
  const auto left = [&](std::uint32_t b, Part part) {
    const double rest = 1 - prices.weight(problem, b, part);
    check(rest > -kRounding, "links take up no more than all of a block's time");
    return std::max(rest, 0.0);  // below zero, what cannot be made again would seem free
  };
  const auto copy = [&](double price, const Direction& way, double rest) {
    return problem.linked ? price * way.busy + rest * way.cost : kNot;
  };
  for (std::uint32_t b = 0; b < problem.blocks(); ++b) {
    weight.push_back(left(b, Part::run));
    pause_weight.push_back(left(b, Part::pause));
    least_weight = std::min(least_weight, pause_weight[b]);
    out.push_back(copy(prices.out[b], problem.out, weight[b]));
    in.push_back(copy(prices.in[b], problem.in, weight[b]));
    pause_out.push_back(copy(prices.pause_out[b], problem.out, pause_weight[b]));
    pause_in.push_back(copy(prices.pause_in[b], problem.in, pause_weight[b]));
  }
}

Gap Paths::gap(const Begin& begin, std::uint32_t until, const Priced& priced) const {
  Gap gap{begin.first,  until,       priced.hold(begin.first, until), begin.stored, begin.stored, {}, {}, {},
          begin.weight, begin.making};
  gap.out.moment = begin.first;
  leave(begin, until, priced, gap);
  come(begin, until, priced, gap);
  if (begin.making.seconds < kNot) {
    const Making& making = begin.making;
    const double there = gap.weight.price * making.slow_seconds;
    const double copied = gap.weight.price * making.seconds + gap.stored.price;
    gap.again_slow = {std::min(there, copied) + making.before, gap.weight.block, until, 0};
    gap.again_is_copied = copied < there;
  }
  return gap;
}

/// A copy beside a kernel has its place while that kernel runs.
void Paths::leave(const Begin& begin, std::uint32_t until, const Priced& priced, Gap& gap) const {
  const std::uint32_t last = problem_.block_of[until];
  for (std::uint32_t b = problem_.block_of[begin.first]; b <= last; ++b) {
    const std::uint32_t enter = std::max(begin.first, problem_.block_begin[b]);
    gap.weight.offer({priced.pause_weight[b], b, until, 0});
    gap.stored.offer({priced.pause_out[b], b, until, 0});
    if (enter < until) gap.stored.offer({priced.out[b], b, until, 1});
    const double held = priced.hold(begin.first, enter);
    gap.out.offer({held + priced.pause_out[b], b, enter, 0});
    if (held + priced.out[b] >= gap.out.price) continue;
    double beside = 0;
    for (std::uint32_t gone = enter + 1; gone <= until && beside < 1; ++gone) {
      beside = priced.pace.done(priced.pace.out, enter, gone);
      const double copy = beside * priced.out[b] + (1 - beside) * priced.pause_out[b];
      gap.out.offer({priced.hold(begin.first, gone) + copy, b, gone, beside});
    }
  }
}

void Paths::come(const Begin& begin, std::uint32_t until, const Priced& priced, Gap& gap) const {
  const Making& making = begin.making;
  const std::uint32_t last = problem_.block_of[until];
  const auto pause = [&](std::uint32_t b, std::uint32_t there) {
    const double held = priced.hold(there, until);
    gap.in.offer({held + priced.pause_in[b], b, there, 0});
    if (making.seconds == kNot) return;
    gap.again.offer({held + priced.pause_weight[b] * making.seconds + making.before, b, there, 0});
  };
  pause(last, until);
  for (std::uint32_t b = last + 1; b-- > problem_.block_of[begin.can_come];) {
    const std::uint32_t end = std::min(problem_.block_begin[b + 1], until);
    if (end <= begin.can_come) continue;
    const double held = priced.hold(end - 1, until);
    if (held >= gap.in.price && (making.seconds == kNot || held >= gap.again.price)) break;
    double beside = held + priced.in[b] < gap.in.price ? 0 : 1;
    for (std::uint32_t there = end; there-- > begin.can_come && beside < 1;) {
      beside = priced.pace.done(priced.pace.in, there, end);
      const double copy = beside * priced.in[b] + (1 - beside) * priced.pause_in[b];
      gap.in.offer({priced.hold(there, until) + copy, b, there, beside});
    }
    if (b < last && end > begin.first) pause(b, end - 1);
  }
}

/// `before`: of the value that the use finds.
Making Paths::make(const BoundTensor& tensor, const BoundUse& use, const Making& before,
                   const Priced& priced) const {
  Making making{use.again / tensor.bytes, use.again_slow / tensor.bytes};
  if (!use.reads || problem_.addressable) return making;
  making.before = before.seconds == kNot ? kNot : priced.least_weight * before.seconds + before.before;
  making.before_seconds = before.seconds + before.before_seconds;
  making.copies = before.copies;
  if (making.before <= best_.cheapest_in.price) return making;
  making.before = best_.cheapest_in.price;
  making.before_seconds = 0;
  making.copies = true;
  return making;
}

void Paths::find_gaps(const BoundTensor& tensor, const Priced& priced, Again again) {
  best_.gaps.clear();
  best_.cheapest_in = {};
  if (again == Again::yes) {
    for (std::uint32_t b = 0; b < problem_.blocks(); ++b) {
      best_.cheapest_in.offer({priced.in[b], b, 0, 1});
      best_.cheapest_in.offer({priced.pause_in[b], b, 0, 0});
    }
  }
  Begin begin;
  for (std::uint32_t i = tensor.uses; i <= tensor.uses_end; ++i) {
    const bool last = i == tensor.uses_end;
    best_.gaps.push_back(gap(begin, last ? problem_.moments() : problem_.uses[i].kernel, priced));
    if (last) break;
    const BoundUse& use = problem_.uses[i];
    begin.stored = best_.gaps.back().stored;
    begin.weight = best_.gaps.back().weight;
    begin.first = std::min(use.kernel + 1, problem_.moments());
    begin.can_come = use.writes ? begin.first : use.kernel;
    if (use.kernel == problem_.moments()) continue;
    if (!use.writes) {
      const std::uint32_t b = problem_.block_of[use.kernel];
      begin.stored.offer({priced.out[b], b, 0, 1});
      continue;
    }
    begin.stored = begin.weight = {};
    if (again == Again::yes) begin.making = make(tensor, use, begin.making, priced);
  }
}

Paths::Costs Paths::use(const BoundTensor& tensor, const BoundUse& use, const Costs& before, const Gap& gap,
                        const Prices& prices, const Priced& priced, Arrivals& arrivals) const {
  Costs after{kNot, kNot, kNot};
  const bool is_end = use.kernel == problem_.moments();
  const double fast = is_end ? 0 : priced.hold(use.kernel, use.kernel + 1);
  const double slow = use.operand == kNever ? 0 : prices.operand[use.operand] / tensor.bytes;
  const auto arrive = [&](double cost, Arrival arrival) {
    if (arrival.to == kSlow && !use.slow) return;
    cost += arrival.to == kSlow ? slow : fast;
    const Place then = use.writes && arrival.to == kBoth ? kFast : arrival.to;
    if (cost >= after[then]) return;
    after[then] = cost;
    arrivals[then] = arrival;
  };
  for (const Place from : {kFast, kBoth, kSlow}) {
    if (before[from] == kNot) continue;
    if (!use.reads) {
      for (const Place to : {kFast, kSlow}) arrive(before[from], {Passage::overwritten, from, to});
      continue;
    }
    for (const Place to : {kFast, kBoth, kSlow}) {
      const Crossing crossing = cross(gap, from, to);
      arrive(before[from] + crossing.price, {crossing.passage, from, to});
    }
  }
  return after;
}

void Paths::trace(std::size_t uses, Place last) {
  best_.arrivals.resize(uses);
  for (std::size_t i = uses; i-- > 0;) {
    best_.arrivals[i] = arrivals_[i][last];
    last = best_.arrivals[i].from;
  }
}

/// From the places with a cost; a persistent tensor ends where it was.
void Paths::try_start(const BoundTensor& tensor, const Costs& start, const Prices& prices,
                      const Priced& priced) {
  const std::size_t uses = tensor.uses_end - tensor.uses;
  arrivals_.resize(uses);
  Costs costs = start;
  for (std::size_t i = 0; i < uses; ++i) {
    costs = use(tensor, problem_.uses[tensor.uses + i], costs, best_.gaps[i], prices, priced, arrivals_[i]);
  }
  for (const Place last : {kFast, kBoth, kSlow}) {
    if (!tensor.persistent) {
      if (costs[last] * tensor.bytes >= best_.price) continue;
      best_.price = costs[last] * tensor.bytes;
      trace(uses, last);
      continue;
    }
    for (const Place home : {kFast, kBoth, kSlow}) {
      // Both end as either of them.
      if (start[home] == kNot && home != kBoth) continue;
      const Crossing crossing = cross(best_.gaps[uses], last, home);
      const double price = (costs[last] + crossing.price) * tensor.bytes;
      if (price >= best_.price) continue;
      best_.price = price;
      trace(uses, last);
      best_.arrivals.push_back({crossing.passage, last, home});
    }
  }
}

const TensorPath& Paths::cheapest(const BoundTensor& tensor, const Prices& prices, const Priced& priced,
                                  Again again) {
  find_gaps(tensor, priced, again);
  best_.price = kNot;
  best_.arrivals.clear();
  if (!tensor.persistent) {
    const bool anywhere = !tensor.given || problem_.addressable;
    try_start(tensor, {0, tensor.given ? kNot : 0, anywhere ? 0 : kNot}, prices, priced);
    return best_;
  }
  for (const Place home : {kFast, kBoth, kSlow}) {
    Costs start{kNot, kNot, kNot};
    start[home] = 0;
    try_start(tensor, start, prices, priced);
  }
  return best_;
}

}  // namespace terrace::bounds

#include "plan/bound_path.hpp"

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
    if (from == kFast) {
      best.offer(gap.stay + gap.again_slow.price, Passage::stays_made_again);
      best.offer(gap.stay + gap.stored.price, Passage::stays_stored);
      best.offer(gap.out.price + gap.in.price, Passage::goes_round);
    } else {
      if (from == kBoth) best.offer(gap.stay, Passage::stays);
      best.offer(gap.in.price, Passage::comes);
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
      in(problem.blocks()) {
  // So that no kernel gains by having an operand in slower memory.
  for (const BoundKernel& kernel : problem.kernels) {
    for (std::uint32_t i = kernel.operands; i < kernel.operands_end; ++i)
      operand[i] = std::max(0.0, problem.operands[i].seconds - kernel.fast);
  }
}

/// One direction alone is busy all the time at most; both have their shares of the rates at once.
double Prices::weight(const Problem& problem, std::uint32_t block) const {
  return std::max({out[block], in[block], problem.out.both * out[block] + problem.in.both * in[block]});
}

void Prices::limit(const Problem& problem) {
  for (std::uint32_t b = 0; b < problem.blocks(); ++b) {
    const double all = weight(problem, b);
    if (all > 1) out[b] /= all, in[b] /= all;
  }
}

Priced::Priced(const Problem& problem, const Prices& prices) {
  until.push_back(0);
  for (const double price : prices.memory) until.push_back(until.back() + price);
  for (std::uint32_t b = 0; b < problem.blocks(); ++b) {
    const double left = 1 - prices.weight(problem, b);
    check(left > -kRounding, "links take up no more than all of a block's time");
    weight.push_back(std::max(left, 0.0));  // below zero, what cannot be made again would seem free
    least_weight = std::min(least_weight, weight[b]);
    out.push_back(problem.linked ? prices.out[b] * problem.out.busy + weight[b] * problem.out.cost : kNot);
    in.push_back(problem.linked ? prices.in[b] * problem.in.busy + weight[b] * problem.in.cost : kNot);
    if (in[b] < in[least_in]) least_in = b;
  }
}

/// `from`: the kernel of the use before, or kNever. `stored`: the cheapest block to copy it out so far.
Gap Paths::gap(std::uint32_t from, std::uint32_t until, const When& stored, const Making& making,
               const Priced& priced) const {
  const std::uint32_t first = from == kNever ? 0 : from + 1;
  const std::uint32_t begin = from == kNever ? 0 : problem_.block_of[from], end = problem_.block_of[until];
  Gap gap{first, until, first < until ? priced.hold(first, until) : 0, stored, stored, {}, {}, {}, making};
  gap.out.moment = first;
  for (std::uint32_t b = begin + 1; b <= end; ++b) {
    if (priced.out[b] < gap.stored.price) gap.stored = {priced.out[b], b, until};
    const std::uint32_t gone = problem_.block_begin[b];
    const double held = priced.hold(first, gone);
    if (held >= gap.out.price) continue;
    if (held + priced.out[b] < gap.out.price) gap.out = {held + priced.out[b], b, gone};
  }
  for (std::uint32_t b = end + 1; b-- > begin;) {
    const std::uint32_t there = std::clamp(problem_.block_begin[b + 1], std::min(first, until), until);
    const double held = priced.hold(there, until);
    const double made = making.seconds == kNot ? kNot : priced.weight[b] * making.seconds + making.before;
    if (held >= gap.in.price && (making.seconds == kNot || held >= gap.again.price)) break;
    if (held + priced.in[b] < gap.in.price) gap.in = {held + priced.in[b], b, there};
    if (held + made < gap.again.price) gap.again = {held + made, b, there};
  }
  if (making.seconds < kNot)
    gap.again_slow = {priced.least_weight * making.seconds + making.before, end, until};
  return gap;
}

/// `before`: of the value that the use finds.
Making Paths::make(const BoundTensor& tensor, const BoundUse& use, const Making& before,
                   const Priced& priced) const {
  Making making{use.again / tensor.bytes};
  if (!use.reads || problem_.addressable) return making;
  making.before = before.seconds == kNot ? kNot : priced.least_weight * before.seconds + before.before;
  making.before_seconds = before.seconds + before.before_seconds;
  making.copied_in = before.copied_in;
  const double copied = priced.in[priced.least_in];
  if (making.before <= copied) return making;
  making.before = copied;
  making.before_seconds = 0;
  making.copied_in = priced.least_in;
  return making;
}

void Paths::find_gaps(const BoundTensor& tensor, const Priced& priced, Again again) {
  best_.gaps.clear();
  std::uint32_t from = kNever;
  Making making;
  When stored{priced.out[0], 0, 0};
  for (std::uint32_t i = tensor.uses; i <= tensor.uses_end; ++i) {
    const bool last = i == tensor.uses_end;
    const std::uint32_t until = last ? problem_.moments() : problem_.uses[i].kernel;
    best_.gaps.push_back(gap(from, until, stored, making, priced));
    if (last) break;
    const BoundUse& use = problem_.uses[i];
    stored = best_.gaps.back().stored;
    from = use.kernel;
    if (!use.writes || use.kernel == problem_.moments()) continue;
    stored = {priced.out[problem_.block_of[from]], problem_.block_of[from], 0};
    if (again == Again::yes) making = make(tensor, use, making, priced);
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

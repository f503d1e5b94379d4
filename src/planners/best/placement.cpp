// SPDX-License-Identifier: Apache-2.0
#include "planners/best/placement.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace terrace::best {

using bounds::BoundTensor;
using bounds::Multipliers;

namespace {

/// What a byte costs where memory is full, in seconds: more than anything else does.
constexpr double kFull = 1e-3;

/// An exchange looks at the largest tensors of one moment, and lets a few of these choose once more.
constexpr std::size_t kLargeOnes = 12, kExchanged = 5;
/// Random numbers between 0 and 1 are drawn in units of one millionth.
constexpr std::uint64_t kGrain = 1'000'000;

/// How many times as long a tensor's copies take as the same bytes in a large transfer, as a power of two.
int copy_overhead(const bounds::Problem& problem, double bytes, const CopyTime& copy) {
  const double large = bytes * (problem.out.busy + problem.in.busy), time = copy.out + copy.in;
  return time > large && large > 0 ? std::ilogb(time / large) : 0;
}

/// The seconds that kernels lose while a link is busy for so long.
double lost(const bounds::Direction& way, double seconds) {
  return way.busy > 0 ? seconds * way.cost / way.busy : 0;
}

}  // namespace

/// Adds what a path uses to the sums of the placement, or takes it away.
struct Placement::Taker {
  Placement& to;
  double bytes, sign;
  CopyTime copy;

  void hold(std::uint32_t first, std::uint32_t end) const {
    for (std::uint32_t m = first; m < end; ++m) to.used_[m] += sign * bytes;
  }
  void copy_out(const bounds::When& when) const {
    const double share = to.hides_ ? when.beside : 1, beside = sign * share * copy.out;
    to.out_busy_[when.block] += beside;
    to.kernels_[when.block] += lost(to.problem_.out, beside);
    to.wait(when, sign * (1 - share) * copy.out);
  }
  void copy_in(const bounds::When& when) const {
    const double share = to.hides_ ? when.beside : 1, beside = sign * share * copy.in;
    to.in_busy_[when.block] += beside;
    to.kernels_[when.block] += lost(to.problem_.in, beside);
    to.wait(when, sign * (1 - share) * copy.in);
  }
  void recompute(std::uint32_t, double) const {}
  void slow(std::uint32_t operand) const {
    const std::uint32_t kernel = to.kernel_of_[operand];
    const double fast = to.problem_.kernels[kernel].fast, before = std::max(fast, to.slow_[kernel]);
    to.slow_[kernel] += sign * to.problem_.operands[operand].seconds;
    const double more = std::max(fast, to.slow_[kernel]) - before;
    to.kernels_[to.problem_.block_of[kernel]] += more;
    to.lost_[kernel] += more;
  }
};

Placement::Placement(const bounds::Problem& problem, const std::vector<CopyTime>& copies, double capacity,
                     Copies expected)
    : problem_(problem),
      copies_(copies),
      capacity_(capacity),
      hides_(expected == Copies::hidden),
      finder_(problem),
      own_(problem),
      unit_costs_(problem, own_),
      paths_(problem.tensors.size()),
      pinned_(problem.tensors.size()),
      kernel_of_(problem.operands.size()),
      used_(problem.moments()),
      lost_(problem.moments()),
      slow_(problem.moments()),
      kernels_(problem.blocks()),
      out_busy_(problem.blocks()),
      in_busy_(problem.blocks()) {
  for (std::uint32_t k = 0; k < problem.moments(); ++k) {
    const bounds::BoundKernel& kernel = problem.kernels[k];
    for (std::uint32_t i = kernel.operands; i < kernel.operands_end; ++i) kernel_of_[i] = k;
    kernels_[problem.block_of[k]] += kernel.fast;
  }
  for (std::size_t t = 0; t < paths_.size(); ++t)
    copy_overhead_.push_back(copy_overhead(problem, problem.tensors[t].bytes, copies[t]));
  begin_.push_back(0);
  for (const bounds::BoundKernel& kernel : problem.kernels) begin_.push_back(begin_.back() + kernel.fast);
  // Fast memory is so expensive at first that only what has to be there takes it.
  std::fill(own_.operand.begin(), own_.operand.end(), 0.0);
  for (std::uint32_t m = 0; m < problem.moments(); ++m)
    unit_costs_.until[m + 1] = unit_costs_.until[m] + kFull;
  for (std::size_t t = 0; t < paths_.size(); ++t) {
    paths_[t] = finder_.cheapest(problem.tensors[t], own_, unit_costs_, bounds::Recompute::no);
    take(t, 1);
  }
}

void Placement::take(std::size_t t, double sign) {
  const BoundTensor& tensor = problem_.tensors[t];
  const Taker taker{*this, tensor.bytes, sign, copies_[t]};
  if (pinned_[t]) return taker.hold(0, problem_.moments());
  bounds::follow(problem_, tensor, paths_[t], taker);
}

void Placement::sweep(const Multipliers& multipliers, Trust trust, Order by, SplitMix& random, double least) {
  std::vector<std::size_t> order;
  for (std::size_t t = 0; t < paths_.size(); ++t) {
    if (problem_.tensors[t].bytes >= least) order.push_back(t);
  }
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (copy_overhead_[a] != copy_overhead_[b]) return copy_overhead_[a] > copy_overhead_[b];
    return by == Order::largest_first && problem_.tensors[a].bytes > problem_.tensors[b].bytes;
  });
  for (const std::size_t t : order) choose(t, multipliers, trust);
}

void Placement::choose(std::size_t t, const Multipliers& multipliers, Trust trust) {
  take(t, -1);
  settle(t, multipliers, trust);
}

void Placement::settle(std::size_t t, const Multipliers& multipliers, Trust trust) {
  const BoundTensor& tensor = problem_.tensors[t];
  price_memory(tensor, multipliers, trust.memory);
  price_links(t, multipliers, trust.link);
  price_operands(tensor);
  if (hides_) unit_costs_.pace = {begin_, copies_[t].out, copies_[t].in};
  const bounds::TensorPath& path = finder_.cheapest(tensor, own_, unit_costs_, bounds::Recompute::no);
  const double pinned = unit_costs_.hold(0, problem_.moments()) * tensor.bytes;
  pinned_[t] = tensor.persistent && pinned <= path.cost;
  paths_[t] = path;
  take(t, 1);
}

/// The first moment of the tensor's life and the one after the last.
std::pair<std::uint32_t, std::uint32_t> Placement::life(const BoundTensor& tensor) const {
  const bool always = tensor.persistent || tensor.given;
  const std::uint32_t first = always ? 0 : problem_.uses[tensor.uses].kernel;
  const std::uint32_t last =
      tensor.persistent ? problem_.moments() : problem_.uses[tensor.uses_end - 1].kernel;
  return {first, std::min(last + 1, problem_.moments())};
}

void Placement::wait(const bounds::When& when, double seconds) {
  paused_ += seconds;
  lost_[std::min(when.moment, problem_.moments() - 1)] += seconds;
}

double Placement::cost() const {
  double sum = paused_;
  for (const double used : used_) sum += kFull * std::max(0.0, used - capacity_);
  for (std::uint32_t b = 0; b < problem_.blocks(); ++b) sum += kernels_[b] + exposed(b);
  return sum;
}

void Placement::list_large() {
  std::vector<std::uint32_t> order(paths_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return problem_.tensors[a].bytes > problem_.tensors[b].bytes;
  });
  large_.resize(problem_.moments());
  for (const std::uint32_t t : order) {
    const auto [first, end] = life(problem_.tensors[t]);
    for (std::uint32_t m = first; m < end; ++m) {
      if (large_[m].size() < kLargeOnes) large_[m].push_back(t);
    }
  }
}

/// Half of the moments are drawn evenly, half by how much time is lost at them.
std::uint32_t Placement::some_moment(SplitMix& random) const {
  const auto any = static_cast<std::uint32_t>(random.below(problem_.moments()));
  const double all = std::accumulate(lost_.begin(), lost_.end(), 0.0);
  if (random.below(2) == 0 || all <= 0) return any;
  double left = all * static_cast<double>(random.below(kGrain)) / kGrain;
  for (std::uint32_t m = 0; m < problem_.moments(); ++m) {
    left -= lost_[m];
    if (left < 0) return m;
  }
  return any;
}

std::vector<std::size_t> Placement::some_of_one_moment(SplitMix& random) const {
  const auto& tensors = large_[some_moment(random)];
  std::vector<std::size_t> some(tensors.begin(), tensors.end());
  for (std::size_t i = some.size(); i > 1; --i) std::swap(some[i - 1], some[random.below(i)]);
  if (some.size() > kExchanged) some.resize(1 + random.below(kExchanged));
  return some;
}

void Placement::exchange(std::uint64_t attempts, SplitMix& random) {
  if (attempts == 0 || problem_.moments() == 0) return;
  if (large_.empty()) list_large();
  for (std::uint64_t i = 0; i < attempts; ++i) try_again(some_of_one_moment(random));
}

/// All tensors of the set give up what they have before the first chooses.
void Placement::try_again(const std::vector<std::size_t>& some) {
  const Multipliers none(problem_);
  const double cost_before = cost();
  std::vector<std::pair<bounds::TensorPath, bool>> before;
  for (const std::size_t t : some) {
    before.emplace_back(paths_[t], pinned_[t]);
    take(t, -1);
  }
  for (const std::size_t t : some) settle(t, none, {0, 0});
  if (cost() <= cost_before) return;
  for (const std::size_t t : some) take(t, -1);
  for (std::size_t i = 0; i < some.size(); ++i) {
    paths_[some[i]] = std::move(before[i].first);
    pinned_[some[i]] = before[i].second;
    take(some[i], 1);
  }
}

/// Sets what memory costs at the moments of the tensor's life.
void Placement::price_memory(const BoundTensor& tensor, const Multipliers& multipliers, double trust) {
  const auto [first, end] = life(tensor);
  const double room = capacity_ - tensor.bytes;
  for (std::uint32_t m = first; m < end; ++m) {
    unit_costs_.until[m + 1] =
        unit_costs_.until[m] + (used_[m] > room ? kFull : trust * multipliers.memory[m]);
  }
}

/// How much longer the copies of a block take than its kernels.
double Placement::exposed(std::uint32_t block) const {
  const double both = out_busy_[block] + in_busy_[block];
  const double shared = both / std::max(1.0, problem_.out.both + problem_.in.both);
  return std::max(
      {0.0, out_busy_[block] - kernels_[block], in_busy_[block] - kernels_[block], shared - kernels_[block]});
}

void Placement::price_links(std::size_t t, const Multipliers& multipliers, double trust) {
  if (!problem_.linked) return;
  const double bytes = problem_.tensors[t].bytes;
  for (std::uint32_t b = 0; b < problem_.blocks(); ++b) {
    const double before = exposed(b), weight = multipliers.weight(problem_, b, bounds::Part::run);
    const auto price = [&](std::vector<double>& busy, double share, const bounds::Direction& way,
                           double seconds) {
      const double slowed = lost(way, seconds);
      busy[b] += seconds;
      kernels_[b] += slowed;
      const double more = std::max(0.0, exposed(b) - before) + slowed;
      busy[b] -= seconds;
      kernels_[b] -= slowed;
      return std::max(more, trust * (share * seconds + (1 - weight) * slowed)) / bytes;
    };
    unit_costs_.out[b] = price(out_busy_, multipliers.out[b], problem_.out, copies_[t].out);
    unit_costs_.in[b] = price(in_busy_, multipliers.in[b], problem_.in, copies_[t].in);
    unit_costs_.pause_out[b] = hides_ ? copies_[t].out / bytes : unit_costs_.out[b];
    unit_costs_.pause_in[b] = hides_ ? copies_[t].in / bytes : unit_costs_.in[b];
  }
}

void Placement::price_operands(const BoundTensor& tensor) {
  for (std::uint32_t i = tensor.uses; i < tensor.uses_end; ++i) {
    const bounds::BoundUse& use = problem_.uses[i];
    if (use.operand == kNever) continue;
    const double fast = problem_.kernels[use.kernel].fast, slow = slow_[use.kernel];
    own_.operand[use.operand] =
        std::max(fast, slow + problem_.operands[use.operand].seconds) - std::max(fast, slow);
  }
}

}  // namespace terrace::best

#include "planners/best/placement.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace terrace::best {

using bounds::BoundTensor;
using bounds::Prices;

namespace {

/// Of a byte where memory is full, in seconds: more than anything else costs.
constexpr double kFull = 1e-3;

/// How many times as long as a part of a large transfer its copies take, in powers of two.
int dearness(const bounds::Problem& problem, double bytes, const CopyTime& copy) {
  const double large = bytes * (problem.out.busy + problem.in.busy), time = copy.out + copy.in;
  return time > large && large > 0 ? std::ilogb(time / large) : 0;
}

/// By kernels, while a link is busy for so long.
double lost(const bounds::Direction& way, double seconds) {
  return way.busy > 0 ? seconds * way.cost / way.busy : 0;
}

}  // namespace

/// Adds what a path takes, or takes it away.
struct Placement::Taker {
  Placement& to;
  double bytes, sign;
  CopyTime copy;

  void hold(std::uint32_t first, std::uint32_t end) const {
    for (std::uint32_t m = first; m < end; ++m) to.used_[m] += sign * bytes;
  }
  void copy_out(std::uint32_t block) const {
    to.out_busy_[block] += sign * copy.out;
    to.kernels_[block] += sign * lost(to.problem_.out, copy.out);
  }
  void copy_in(std::uint32_t block) const {
    to.in_busy_[block] += sign * copy.in;
    to.kernels_[block] += sign * lost(to.problem_.in, copy.in);
  }
  void again(std::uint32_t, double) const {}
  void slow(std::uint32_t operand) const {
    const std::uint32_t kernel = to.kernel_of_[operand];
    const double fast = to.problem_.kernels[kernel].fast, before = std::max(fast, to.slow_[kernel]);
    to.slow_[kernel] += sign * to.problem_.operands[operand].seconds;
    to.kernels_[to.problem_.block_of[kernel]] += std::max(fast, to.slow_[kernel]) - before;
  }
};

Placement::Placement(const bounds::Problem& problem, const std::vector<CopyTime>& copies, double capacity)
    : problem_(problem),
      copies_(copies),
      capacity_(capacity),
      finder_(problem),
      own_(problem),
      priced_(problem, own_),
      paths_(problem.tensors.size()),
      pinned_(problem.tensors.size()),
      kernel_of_(problem.operands.size()),
      used_(problem.moments()),
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
    dearness_.push_back(dearness(problem, problem.tensors[t].bytes, copies[t]));
  // Fast memory at a price that only what has to be there pays.
  std::fill(own_.operand.begin(), own_.operand.end(), 0.0);
  for (std::uint32_t m = 0; m < problem.moments(); ++m) priced_.until[m + 1] = priced_.until[m] + kFull;
  for (std::size_t t = 0; t < paths_.size(); ++t) {
    paths_[t] = finder_.cheapest(problem.tensors[t], own_, priced_, bounds::Again::no);
    take(t, 1);
  }
}

void Placement::take(std::size_t t, double sign) {
  const BoundTensor& tensor = problem_.tensors[t];
  const Taker taker{*this, tensor.bytes, sign, copies_[t]};
  if (pinned_[t]) return taker.hold(0, problem_.moments());
  bounds::follow(problem_, tensor, paths_[t], taker);
}

void Placement::sweep(const Prices& prices, Trust trust, Order by, SplitMix& random) {
  std::vector<std::size_t> order(paths_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (dearness_[a] != dearness_[b]) return dearness_[a] > dearness_[b];
    return by == Order::largest_first && problem_.tensors[a].bytes > problem_.tensors[b].bytes;
  });
  for (const std::size_t t : order) choose(t, prices, trust);
}

void Placement::choose(std::size_t t, const Prices& prices, Trust trust) {
  const BoundTensor& tensor = problem_.tensors[t];
  take(t, -1);
  price_memory(tensor, prices, trust.memory);
  price_links(t, prices, trust.link);
  price_operands(tensor);
  const bounds::TensorPath& path = finder_.cheapest(tensor, own_, priced_, bounds::Again::no);
  const double pinned = priced_.hold(0, problem_.moments()) * tensor.bytes;
  pinned_[t] = tensor.persistent && pinned <= path.price;
  paths_[t] = path;
  take(t, 1);
}

/// At the moments of its life.
void Placement::price_memory(const BoundTensor& tensor, const Prices& prices, double trust) {
  const bool always = tensor.persistent || tensor.given;
  const std::uint32_t first = always ? 0 : problem_.uses[tensor.uses].kernel;
  const std::uint32_t last =
      tensor.persistent ? problem_.moments() : problem_.uses[tensor.uses_end - 1].kernel;
  const double room = capacity_ - tensor.bytes;
  for (std::uint32_t m = first; m < std::min(last + 1, problem_.moments()); ++m) {
    priced_.until[m + 1] = priced_.until[m] + (used_[m] > room ? kFull : trust * prices.memory[m]);
  }
}

/// How much longer copies take than their block has.
double Placement::exposed(std::uint32_t block) const {
  const double both = out_busy_[block] + in_busy_[block];
  const double shared = both / std::max(1.0, problem_.out.both + problem_.in.both);
  return std::max(
      {0.0, out_busy_[block] - kernels_[block], in_busy_[block] - kernels_[block], shared - kernels_[block]});
}

void Placement::price_links(std::size_t t, const Prices& prices, double trust) {
  if (!problem_.linked) return;
  const double bytes = problem_.tensors[t].bytes;
  for (std::uint32_t b = 0; b < problem_.blocks(); ++b) {
    const double before = exposed(b), weight = prices.weight(problem_, b);
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
    priced_.out[b] = price(out_busy_, prices.out[b], problem_.out, copies_[t].out);
    priced_.in[b] = price(in_busy_, prices.in[b], problem_.in, copies_[t].in);
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

#include "bounds/relaxation.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

namespace terrace::bounds {
namespace {

constexpr double kRounding = 1e-9;
/// All sets of as many operands are looked at.
constexpr std::uint32_t kFewOperands = 6;

}  // namespace

/// Adds what a path takes.
struct Relaxation::Taker {
  Relaxation& to;
  double bytes;
  void hold(std::uint32_t first, std::uint32_t end) const {
    if (first >= end) return;
    to.subgradient_.memory[first] += bytes;
    to.subgradient_.memory[end] -= bytes;
  }
  void copy_out(const When& when) const {
    to.run_[when.block].out += when.beside * bytes;
    to.pause_[when.block].out += (1 - when.beside) * bytes;
  }
  void copy_in(const When& when) const {
    to.run_[when.block].in += when.beside * bytes;
    to.pause_[when.block].in += (1 - when.beside) * bytes;
  }
  void recompute(std::uint32_t block, double seconds) const { to.pause_[block].kernels += seconds; }
  void slow(std::uint32_t operand) const { to.subgradient_.operand[operand] += 1; }
};

Relaxation::Relaxation(const Problem& problem) : problem_(problem), paths_(problem) {}

double Relaxation::bound(const Multipliers& multipliers, Recompute recompute) {
  const UnitCosts unit_costs(problem_, multipliers);
  subgradient_.memory.assign(problem_.moments() + 1, 0);
  subgradient_.operand.assign(problem_.operands.size(), 0);
  run_.assign(problem_.blocks(), {});
  pause_.assign(problem_.blocks(), {});
  double sum = 0;
  for (std::uint32_t k = 0; k < problem_.moments(); ++k) {
    sum += add_kernel(k, multipliers, unit_costs.weight[problem_.block_of[k]]);
  }
  for (const BoundTensor& tensor : problem_.tensors) {
    const TensorPath& path = paths_.cheapest(tensor, multipliers, unit_costs, recompute);
    if (path.arrivals.empty()) return 0;  // there is no plan
    sum += path.cost;
    follow(problem_, tensor, path, Taker{*this, tensor.bytes});
  }
  const double rent = unit_costs.until.back() * problem_.capacity;
  settle(multipliers);
  return sum - rent - kRounding * (problem_.compute + std::abs(sum) + rent);
}

/// Its time less the prices of those of its operands that it would have in slower memory. What is not there
/// fits in fast memory.
double Relaxation::add_kernel(std::uint32_t k, const Multipliers& multipliers, double weight) {
  const BoundKernel& kernel = problem_.kernels[k];
  const std::uint32_t count = kernel.operands_end - kernel.operands;
  if (count > kFewOperands) return add_large_kernel(k, multipliers, weight);
  struct Set {
    double slow = 0, cost = 0, bytes = 0;
  };
  std::array<Set, 1U << kFewOperands> sets;
  double all = 0;
  for (std::uint32_t i = kernel.operands; i < kernel.operands_end; ++i) all += problem_.operands[i].bytes;
  double best = std::numeric_limits<double>::infinity(), time = kernel.fast;
  std::uint32_t chosen = 0;
  sets[0] = {};
  for (std::uint32_t set = 0; set < 1U << count; ++set) {
    if (set > 0) {
      const Set& rest = sets[set & (set - 1)];
      const std::uint32_t i = kernel.operands + static_cast<std::uint32_t>(std::countr_zero(set));
      const SlowOperand& operand = problem_.operands[i];
      sets[set] = {rest.slow + operand.seconds, rest.cost + multipliers.operand[i],
                   rest.bytes + operand.bytes};
    }
    if (all - sets[set].bytes > problem_.capacity) continue;
    const double takes = std::max(kernel.fast, sets[set].slow), value = weight * takes - sets[set].cost;
    if (value < best) best = value, time = takes, chosen = set;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    if ((chosen >> i & 1U) != 0) subgradient_.operand[kernel.operands + i] -= 1;
  }
  run_[problem_.block_of[k]].kernels += time;
  return best;
}

/// With fractions of operands, the best paid for their time first.
double Relaxation::add_large_kernel(std::uint32_t k, const Multipliers& multipliers, double weight) {
  const BoundKernel& kernel = problem_.kernels[k];
  order_.resize(kernel.operands_end - kernel.operands);
  std::iota(order_.begin(), order_.end(), kernel.operands);
  const auto pay = [&](std::uint32_t i) { return multipliers.operand[i] / problem_.operands[i].seconds; };
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) { return pay(a) > pay(b); });
  double slow = 0, paid = 0;
  for (const std::uint32_t i : order_) {
    const double seconds = problem_.operands[i].seconds;
    // Up to the time in fast memory it costs nothing.
    const double share = pay(i) > weight ? 1 : std::clamp((kernel.fast - slow) / seconds, 0.0, 1.0);
    if (pay(i) <= 0 || share <= 0) break;
    slow += share * seconds;
    paid += share * multipliers.operand[i];
    subgradient_.operand[i] -= share;
  }
  const double time = std::max(kernel.fast, slow);
  run_[problem_.block_of[k]].kernels += time;
  return weight * time - paid;
}

void Relaxation::settle(const Multipliers& multipliers) {
  std::partial_sum(subgradient_.memory.begin(), subgradient_.memory.end(), subgradient_.memory.begin());
  subgradient_.memory.pop_back();
  for (double& bytes : subgradient_.memory) bytes -= problem_.capacity;
  settle(multipliers, Part::run, subgradient_.out, subgradient_.in);
  settle(multipliers, Part::pause, subgradient_.pause_out, subgradient_.pause_in);
}

void Relaxation::settle(const Multipliers& multipliers, Part part, std::vector<double>& by_out_multiplier,
                        std::vector<double>& by_in_multiplier) const {
  const auto& price_out = part == Part::run ? multipliers.out : multipliers.pause_out;
  const auto& price_in = part == Part::run ? multipliers.in : multipliers.pause_in;
  by_out_multiplier.resize(problem_.blocks());
  by_in_multiplier.resize(problem_.blocks());
  const Direction &out = problem_.out, &in = problem_.in;
  for (std::uint32_t b = 0; b < problem_.blocks(); ++b) {
    const Load& load = (part == Part::run ? run_ : pause_)[b];
    const double all = multipliers.weight(problem_, b, part);
    const double time = load.kernels + load.out * out.cost + load.in * in.cost;
    // How the weight changes with each price: where several bind, as much as the most.
    const bool together = out.both * price_out[b] + in.both * price_in[b] >= all;
    const double by_out = price_out[b] >= all ? 1 : together ? out.both : 0;
    const double by_in = price_in[b] >= all ? 1 : together ? in.both : 0;
    by_out_multiplier[b] = load.out * out.busy - by_out * time;
    by_in_multiplier[b] = load.in * in.busy - by_in * time;
  }
}

}  // namespace terrace::bounds

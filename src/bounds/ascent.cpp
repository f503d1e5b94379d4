#include "bounds/ascent.hpp"

#include <algorithm>
#include <limits>

namespace terrace::bounds {
namespace {

// These constants were found by experiment on four of AutoTM's networks.
constexpr optim::AscentRules kRules{.patience = 12, .first_slip = 0.3, .least_slip = 0.05};
constexpr double kMemoryShare = 0.05, kLinkUnit = 0.2;
/// A step aims at gaining this share of what the bound has gained over the kernels' time so far.
constexpr double kHope = 0.3;
/// How often the search for one multiplier halves its range: less often where few bounds are allowed.
constexpr int kHalvings = 5, kFewHalvings = 3;
constexpr std::uint64_t kFewBounds = 50;
/// The multipliers of links that are tried, before and after the moment that the search starts from.
constexpr double kWeights[] = {0, 0.4, 1};

}  // namespace

Ascent::Ascent(const Problem& problem, Recompute recompute)
    : problem_(problem),
      recompute_(recompute),
      relaxation_(problem),
      multipliers_(problem),
      best_multipliers_(problem),
      best_(problem.compute),
      steps_(kRules, alone_) {}

double Ascent::take() {
  latest_ = relaxation_.bound(multipliers_, recompute_);
  ++taken_;
  const bool rose = latest_ > best_;
  steps_.note(rose);
  if (rose) {
    best_ = latest_;
    best_multipliers_ = multipliers_;
  }
  return latest_;
}

/// Finds memory's multiplier at one moment by halving between a value that is too low and one that is too
/// high.
void Ascent::look_from(std::uint32_t moment, double out, double in, int halvings) {
  multipliers_ = Multipliers(problem_);
  const std::uint32_t here = problem_.block_of[moment];
  for (std::uint32_t b = 0; b < problem_.blocks(); ++b) {
    multipliers_.out[b] = b <= here ? out : 0;
    multipliers_.in[b] = b >= here ? in : 0;
  }
  multipliers_.limit(problem_);  // both directions have a multiplier in the block that is looked from
  // If copies took up all of a pause, recomputation in it would seem free.
  if (recompute_ == Recompute::yes)
    multipliers_.pause_out = multipliers_.out, multipliers_.pause_in = multipliers_.in;
  for (std::uint32_t k = 0; k < problem_.moments(); ++k) {
    const BoundKernel& kernel = problem_.kernels[k];
    const double weight = 1 - multipliers_.weight(problem_, problem_.block_of[k], Part::run);
    for (std::uint32_t i = kernel.operands; i < kernel.operands_end; ++i) multipliers_.operand[i] *= weight;
  }
  double& price = multipliers_.memory[moment];
  double low = 0, high = problem_.out.busy + problem_.in.busy;
  for (int i = 0; i < halvings; ++i) {
    price = (low + high) / 2;
    take();
    (relaxation_.subgradient().memory[moment] > 0 ? low : high) = price;
  }
}

void Ascent::set_units() {
  double most = 0;
  for (const double price : best_multipliers_.memory) most = std::max(most, price);
  if (most == 0)
    most = problem_.out.busy + problem_.in.busy;  // no single moment proves more than the kernels
  constexpr double kAny = std::numeric_limits<double>::infinity();
  using Subgradient = Relaxation::Subgradient;
  steps_.add(&Multipliers::memory, &Subgradient::memory, kAny,
             std::vector<double>(problem_.moments(), kMemoryShare * most));
  std::vector<double> operands;
  for (const SlowOperand& operand : problem_.operands) operands.push_back(operand.seconds);
  steps_.add(&Multipliers::operand, &Subgradient::operand, kAny, std::move(operands));
  const std::vector<double> links(problem_.blocks(), kLinkUnit);
  steps_.add(&Multipliers::out, &Subgradient::out, kAny, links);
  steps_.add(&Multipliers::in, &Subgradient::in, kAny, links);
  steps_.add(&Multipliers::pause_out, &Subgradient::pause_out, kAny, links);
  steps_.add(&Multipliers::pause_in, &Subgradient::pause_in, kAny, links);
}

void Ascent::climb(std::uint64_t bounds) {
  if (problem_.moments() == 0 || (!problem_.linked && !problem_.addressable)) return;
  take();
  const auto& live = relaxation_.subgradient().memory;
  const auto peak = std::max_element(live.begin(), live.end());
  if (*peak <= 0) return;
  look_around(static_cast<std::uint32_t>(peak - live.begin()),
              bounds < kFewBounds ? kFewHalvings : kHalvings);
  walk(bounds);
}

void Ascent::climb_from(const Ascent& other, std::uint64_t bounds) {
  if (other.best_ <= problem_.compute) return climb(bounds);
  best_multipliers_ = other.best_multipliers_;
  walk(bounds);
}

void Ascent::look_around(std::uint32_t moment, int halvings) {
  double best_out = 0, before = best_;
  for (const double out : kWeights) {
    look_from(moment, out, 0, halvings);
    if (best_ > before) before = best_, best_out = out;
  }
  for (const double in : kWeights) {
    if (in > 0) look_from(moment, best_out, in, halvings);
  }
}

void Ascent::walk(std::uint64_t bounds) {
  set_units();
  multipliers_ = best_multipliers_;
  steps_.begin();
  while (taken_ < bounds) {
    take();
    step();
  }
}

void Ascent::step() {
  const double hoped = best_ + kHope * (best_ - problem_.compute) + 1e-3 * problem_.compute;
  if (steps_.step(hoped - latest_, relaxation_.subgradient(), multipliers_)) multipliers_.limit(problem_);
}

}  // namespace terrace::bounds

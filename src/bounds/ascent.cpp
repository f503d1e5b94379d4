#include "bounds/ascent.hpp"

#include <algorithm>
#include <cmath>

namespace terrace::bounds {
namespace {

// Found by trying on four of AutoTM's networks.
constexpr int kPatience = 12;
constexpr double kShrink = 0.7;
constexpr double kFirstSlip = 0.3, kLeastSlip = 0.05, kLessSlip = 0.9;
constexpr double kMemoryShare = 0.05, kLinkUnit = 0.2;
/// Of what the bound is above the kernels' time: a step is as long as would gain this much.
constexpr double kHope = 0.3;
/// Fewer where there is little time.
constexpr int kHalvings = 5, kFewHalvings = 3;
constexpr std::uint64_t kFewBounds = 50;
/// Of links before and after the moment that is looked from.
constexpr double kWeights[] = {0, 0.4, 1};

/// What does not push a price out of its range.
double pull(double multiplier, double subgradient) {
  return multiplier <= 0 && subgradient < 0 ? 0 : subgradient;
}

}  // namespace

Ascent::Ascent(const Problem& problem, Recompute recompute)
    : problem_(problem),
      recompute_(recompute),
      relaxation_(problem),
      multipliers_(problem),
      best_multipliers_(problem),
      best_(problem.compute),
      slip_(kFirstSlip) {
  kinds_ = {{&Multipliers::memory, &Relaxation::Subgradient::memory},
            {&Multipliers::operand, &Relaxation::Subgradient::operand},
            {&Multipliers::out, &Relaxation::Subgradient::out},
            {&Multipliers::in, &Relaxation::Subgradient::in},
            {&Multipliers::pause_out, &Relaxation::Subgradient::pause_out},
            {&Multipliers::pause_in, &Relaxation::Subgradient::pause_in}};
}

double Ascent::take() {
  latest_ = relaxation_.bound(multipliers_, recompute_);
  ++taken_;
  if (latest_ > best_) {
    best_ = latest_;
    best_multipliers_ = multipliers_;
    stalled_ = 0;
  } else if (++stalled_ == kPatience) {
    stalled_ = 0;
    factor_ *= kShrink;
    slip_ = std::max(slip_ * kLessSlip, kLeastSlip);
  }
  return latest_;
}

/// Halves between a price of memory that is too low for what is there and one that is too high.
void Ascent::look_from(std::uint32_t moment, double out, double in, int halvings) {
  multipliers_ = Multipliers(problem_);
  const std::uint32_t here = problem_.block_of[moment];
  for (std::uint32_t b = 0; b < problem_.blocks(); ++b) {
    multipliers_.out[b] = b <= here ? out : 0;
    multipliers_.in[b] = b >= here ? in : 0;
  }
  multipliers_.limit(problem_);  // both directions have a price in the block that is looked from
  // A pause that copies take up would let things be computed again for nothing.
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
  kinds_[0].unit.assign(problem_.moments(), kMemoryShare * most);
  for (const SlowOperand& operand : problem_.operands) kinds_[1].unit.push_back(operand.seconds);
  for (std::size_t link = 2; link < kinds_.size(); ++link)
    kinds_[link].unit.assign(problem_.blocks(), kLinkUnit);
  for (Kind& kind : kinds_) {
    kind.mean.resize(kind.unit.size());
    kind.velocity.resize(kind.unit.size());
  }
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
  stalled_ = 0;
  factor_ = 1;
  while (taken_ < bounds) {
    take();
    step();
  }
}

void Ascent::step() {
  ++steps_;
  double square = 0;
  for (Kind& kind : kinds_) square += measure(kind);
  if (square <= 0) return;
  const double hoped = best_ + kHope * (best_ - problem_.compute) + 1e-3 * problem_.compute;
  for (Kind& kind : kinds_) move(kind, factor_ * (hoped - latest_) / square);
  multipliers_.limit(problem_);
}

/// The square of the direction's length.
double Ascent::measure(Kind& kind) {
  const std::vector<double>&multipliers = multipliers_.*kind.multipliers,
        &subgradient = relaxation_.subgradient().*kind.subgradient;
  double sum = 0;
  for (std::size_t i = 0; i < kind.unit.size(); ++i) {
    const double force = kind.unit[i] * pull(multipliers[i], subgradient[i]), square = force * force;
    kind.mean[i] += (square - kind.mean[i]) / steps_;
    if (square > 0) sum += square / std::sqrt(kind.mean[i]);
  }
  return sum;
}

void Ascent::move(Kind& kind, double length) {
  const std::vector<double>& subgradient = relaxation_.subgradient().*kind.subgradient;
  std::vector<double>& multipliers = multipliers_.*kind.multipliers;
  for (std::size_t i = 0; i < kind.unit.size(); ++i) {
    const double scale = kind.mean[i] > 0 ? kind.unit[i] * kind.unit[i] / std::sqrt(kind.mean[i]) : 0;
    kind.velocity[i] = (1 - slip_) * kind.velocity[i] + length * scale * subgradient[i];
    multipliers[i] = std::max(0.0, multipliers[i] + kind.velocity[i]);
  }
}

}  // namespace terrace::bounds

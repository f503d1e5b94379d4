#include "planners/autotm/solver/ascent.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace terrace::autotm {
namespace {

// Found by trying on two of the paper's networks, where others did about as well.
constexpr int kPatience = 30;
constexpr double kShrink = 0.7;
constexpr double kFirstSlip = 0.2, kLeastSlip = 0.03, kLessSlip = 0.9;
constexpr double kMemoryUnit = 2;
/// Rates change little from one step to the next, and roots take time.
constexpr std::uint64_t kStepsPerRate = 8;

constexpr double kAny = std::numeric_limits<double>::infinity();

/// What does not push a price out of its range.
double pull(double multiplier, double subgradient, double most) {
  return (multiplier <= 0 && subgradient < 0) || (multiplier >= most && subgradient > 0) ? 0 : subgradient;
}

}  // namespace

Ascent::Ascent(const Flat& flat, Team& team)
    : team_(team),
      relaxation_(flat, team),
      multipliers_(flat),
      best_multipliers_(flat),
      taken_(flat.configurations.size()),
      best_(-kAny),
      slip_(kFirstSlip) {
  Kind link{&Multipliers::link, &Relaxation::Subgradient::link, kAny, {}, {}, {}, {}};
  for (const Flat::Link& one : flat.links) link.scale.push_back(one.worth * one.worth);
  const double unit = kMemoryUnit * flat.memory_worth();
  add({&Multipliers::memory,
       &Relaxation::Subgradient::memory,
       kAny,
       std::vector<double>(flat.rows(), unit * unit),
       {},
       {},
       {}});
  add(std::move(link));
  Kind overlap{&Multipliers::overlap, &Relaxation::Subgradient::overlap, 1, {}, {}, {}, {}};
  for (const Flat::Kernel& kernel : flat.kernels) overlap.scale.push_back(kernel.overlaps ? 1 : 0);
  if (std::find(overlap.scale.begin(), overlap.scale.end(), 1) == overlap.scale.end()) return;
  Kind haste = overlap;
  haste.multipliers = &Multipliers::haste;
  haste.subgradient = &Relaxation::Subgradient::haste;
  add(std::move(overlap));
  add(std::move(haste));
}

void Ascent::add(Kind kind) {
  kind.squares.resize(kind.scale.size());
  kind.rate.resize(kind.scale.size());
  kind.velocity.resize(kind.scale.size());
  kinds_.push_back(std::move(kind));
}

void Ascent::step(double aim) {
  const double bound = relaxation_.bound(multipliers_);
  remember(bound);
  for (const std::uint32_t configuration : relaxation_.taken()) taken_[configuration] = true;
  ++steps_;
  double square = 0;
  for (Kind& kind : kinds_) square += measure(kind);
  if (square <= 0 || aim <= bound) return;
  for (Kind& kind : kinds_) move(kind, factor_ * (aim - bound) / square);
  multipliers_.share_overlap();
}

void Ascent::remember(double bound) {
  if (bound > best_) {
    best_ = bound;
    best_multipliers_ = multipliers_;
    stalled_ = 0;
  } else if (++stalled_ == kPatience) {
    stalled_ = 0;
    factor_ *= kShrink;
    slip_ = std::max(slip_ * kLessSlip, kLeastSlip);
  }
}

double Ascent::measure(Kind& kind) {
  const std::vector<double>&multipliers = multipliers_.*kind.multipliers,
        &subgradient = relaxation_.subgradient().*kind.subgradient;
  const bool renews = steps_ < kStepsPerRate || steps_ % kStepsPerRate == 0;
  const double steps = static_cast<double>(steps_);
  return team_.sum(kind.scale.size(), [&](std::size_t i) {
    const double force = pull(multipliers[i], subgradient[i], kind.most), square = force * force;
    kind.squares[i] += kind.scale[i] * square;
    // Its unit over the root of the mean square of its pulls.
    if (renews) kind.rate[i] = kind.squares[i] > 0 ? kind.scale[i] * std::sqrt(steps / kind.squares[i]) : 0;
    return kind.rate[i] * square;
  });
}

void Ascent::move(Kind& kind, double length) {
  const std::vector<double>& subgradient = relaxation_.subgradient().*kind.subgradient;
  std::vector<double>& multipliers = multipliers_.*kind.multipliers;
  team_.each(kind.scale.size(), [&](std::size_t i) {
    kind.velocity[i] = (1 - slip_) * kind.velocity[i] + length * kind.rate[i] * subgradient[i];
    multipliers[i] = std::clamp(multipliers[i] + kind.velocity[i], 0.0, kind.most);
  });
}

}  // namespace terrace::autotm

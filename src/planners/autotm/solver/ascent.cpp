// SPDX-License-Identifier: Apache-2.0
#include "planners/autotm/solver/ascent.hpp"

#include <limits>
#include <utility>

namespace terrace::autotm {
namespace {

// These were found by experiment on two of the paper's networks, where others did about as well.
constexpr optim::AscentRules kRules{.patience = 30, .first_slip = 0.2, .least_slip = 0.03};
constexpr double kUnitOfMemory = 2;

constexpr double kAny = std::numeric_limits<double>::infinity();

}  // namespace

Ascent::Ascent(const Flat& flat, Team& team)
    : relaxation_(flat, team),
      multipliers_(flat),
      best_multipliers_(flat),
      taken_(flat.configurations.size()),
      best_(-kAny),
      steps_(kRules, team) {
  using Subgradient = Relaxation::Subgradient;
  const double unit = kUnitOfMemory * flat.memory_worth();
  steps_.add(&Multipliers::memory, &Subgradient::memory, kAny, std::vector<double>(flat.rows(), unit));
  std::vector<double> links;
  for (const Flat::Link& link : flat.links) links.push_back(link.worth);
  steps_.add(&Multipliers::link, &Subgradient::link, kAny, std::move(links));
  if (!flat.overlaps()) return;
  std::vector<double> kernels;
  for (const Flat::Kernel& kernel : flat.kernels) kernels.push_back(kernel.overlaps ? 1 : 0);
  steps_.add(&Multipliers::overlap, &Subgradient::overlap, 1, kernels);
  steps_.add(&Multipliers::haste, &Subgradient::haste, 1, kernels);
}

void Ascent::step(double aim) {
  const double bound = relaxation_.bound(multipliers_);
  remember(bound);
  for (const std::uint32_t configuration : relaxation_.taken()) taken_[configuration] = true;
  if (steps_.step(aim - bound, relaxation_.subgradient(), multipliers_)) multipliers_.share_overlap();
}

void Ascent::remember(double bound) {
  const bool rose = bound > best_;
  steps_.note(rose);
  if (!rose) return;
  best_ = bound;
  best_multipliers_ = multipliers_;
}

}  // namespace terrace::autotm

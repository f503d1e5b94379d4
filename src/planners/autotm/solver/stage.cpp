// SPDX-License-Identifier: Apache-2.0
#include "planners/autotm/solver/stage.hpp"

#include <algorithm>
#include <cmath>

#include "planners/autotm/solver/ascent.hpp"

namespace terrace::autotm {
namespace {

/// The share of the gap that a bound may give away for fewer configurations.
constexpr double kSlack = 0.2;
/// How many subgradient steps are taken before primal-dual steps get further.
constexpr std::uint64_t kClimbSteps = 60;
/// How much more than what is proven a climb aims at, at first and in the end, as a share of it.
constexpr double kFirstAim = 0.1, kLastAim = 0.01;
/// How many of the latest steps tell how steep a climb is.
constexpr std::size_t kLatestSteps = 10;
/// How many steps a climb takes from one look at the stop token to the next.
constexpr std::uint64_t kStepsPerLook = 10;

/// Finds each edge of one smaller problem in another. Edges that became one lie on the same paths, but
/// their move is beside a kernel in one of them alone.
std::vector<std::uint32_t> match_edges(const Flat& whole, const Reduction& one, const Reduction& other) {
  std::vector<std::uint32_t> found(one.flat.edges.size(), kNone);
  for (std::size_t e = 0; e < whole.edges.size(); ++e) {
    if (one.edges[e] == kNone) continue;
    std::uint32_t& match = found[one.edges[e]];
    if (match == kNone || whole.is_beside(whole.edges[e])) match = other.edges[e];
  }
  return found;
}

/// Finds each configuration of one smaller problem in another.
std::vector<std::uint32_t> match_configurations(const Flat& one, const Flat& other) {
  std::vector<std::uint32_t> found(one.configurations.size(), kNone);
  for (std::size_t k = 0; k < one.kernels.size(); ++k) {
    for (std::uint32_t c = one.kernels[k].first; c < one.kernels[k].end; ++c) {
      for (std::uint32_t d = other.kernels[k].first; d < other.kernels[k].end; ++d) {
        if (one.configurations[c].index == other.configurations[d].index) found[c] = d;
      }
    }
  }
  return found;
}

/// Returns how far a climb with these bounds aims: half of what the latest steps gained, and less and less
/// where that is little.
double beyond(const std::vector<double>& bounds) {
  if (bounds.size() <= kLatestSteps) return kFirstAim;
  const double before = bounds[bounds.size() - 1 - kLatestSteps];
  const double done = static_cast<double>(bounds.size()) / static_cast<double>(kClimbSteps);
  const double least = kFirstAim * std::pow(kLastAim / kFirstAim, done);
  return before > 0 ? std::clamp((bounds.back() / before - 1) / 2, least, kFirstAim) : kFirstAim;
}

}  // namespace

Stage::Stage(const Flat& whole, double gap, Team& team)
    : gap_(gap),
      team_(team),
      reduction_(whole, kSlack * gap),
      cuts_(reduction_.flat),
      relaxation_(reduction_.flat, team, cuts_),
      best_(reduction_.flat),
      overlaps_(whole.overlaps()) {}

Stage::Stage(const Flat& whole, double gap, const Stage& coarser) : Stage(whole, gap, coarser.team_) {
  const std::vector<std::uint32_t> edges = match_edges(whole, reduction_, coarser.reduction_);
  cuts_.adopt(coarser.cuts_, edges);
  const auto taken_along = [&](const Multipliers& multipliers) {
    Multipliers wide(whole);
    coarser.reduction_.widen(multipliers, coarser.cuts_, wide);
    Multipliers made = reduction_.narrow(wide);
    made.cut = multipliers.cut;
    return made;
  };
  // Where the larger problem's bound is less at the same multipliers, the smaller one's holds all the same.
  best_ = taken_along(coarser.best_);
  bound_ = std::max(coarser.bound_, relaxation_.bound(best_));
  primal_dual_.emplace(reduction_.flat, team_, cuts_, taken_along(coarser.primal_dual_->multipliers()),
                       std::vector<bool>{});
  primal_dual_->resume(*coarser.primal_dual_, edges,
                       match_configurations(reduction_.flat, coarser.reduction_.flat));
  is_balanced_ = coarser.is_balanced_;
}

std::uint64_t Stage::climb(Seconds time, const std::stop_token& stop) {
  Ascent ascent(reduction_.flat, team_);
  std::vector<double> bounds;
  while (bounds.size() < kClimbSteps) {
    const double aim = ascent.bound() > 0 ? ascent.bound() * (1 + beyond(bounds)) : time.count();
    ascent.step(std::min(aim, time.count()));
    bounds.push_back(ascent.bound());
    if (bounds.size() % kStepsPerLook == 0 && stop.stop_requested()) break;
  }
  bound_ = ascent.bound();
  best_ = ascent.multipliers();
  primal_dual_.emplace(reduction_.flat, team_, cuts_, best_, ascent.taken());
  return bounds.size();
}

std::uint64_t Stage::balance(std::uint64_t steps, double enough, const std::stop_token& stop) {
  if (is_balanced_ && overlaps_) primal_dual_->add_cuts();
  is_balanced_ = true;
  for (std::uint64_t i = 1; i <= steps; ++i) {
    if (!primal_dual_->step()) continue;
    take_bound(primal_dual_->multipliers());
    primal_dual_->offer(relaxation_.taken());
    if (bound_ >= enough || stop.stop_requested()) return i;
  }
  return steps;
}

void Stage::take_bound(const Multipliers& multipliers) {
  const double bound = relaxation_.bound(multipliers);
  if (!(bound > bound_)) return;
  bound_ = bound;
  best_ = multipliers;
}

double Stage::given_away() const {
  double fastest = 0;
  for (const Flat::Kernel& kernel : reduction_.flat.kernels) {
    if (kernel.first < kernel.end) fastest += reduction_.flat.configurations[kernel.first].time;
  }
  return kSlack * gap_ * fastest;
}

void Stage::show(std::vector<double>& fractionality, std::vector<double>& shares,
                 Multipliers& multipliers) const {
  std::fill(fractionality.begin(), fractionality.end(), 0.0);
  for (std::size_t t = 0; t < reduction_.tensors.size(); ++t)
    fractionality[reduction_.tensors[t]] = primal_dual_->fractionality(static_cast<std::uint32_t>(t));
  for (std::size_t e = 0; e < shares.size(); ++e)
    shares[e] = reduction_.edges[e] == kNone ? 0 : primal_dual_->share(reduction_.edges[e]);
  reduction_.widen(best_, cuts_, multipliers);
}

}  // namespace terrace::autotm

// SPDX-License-Identifier: Apache-2.0
// The overlap's inequalities among the primal-dual steps: each has a weight, those of a kernel at most 1
// together.
#include <algorithm>

#include "planners/autotm/solver/primal_dual.hpp"

namespace terrace::autotm {

std::size_t PrimalDual::add_cuts() {
  const std::size_t found = cuts_.find(next_.edge, next_.configuration);
  if (found == 0) return 0;
  for (Point* point : {&now_, &next_, &start_, &unit_, &step_, &asked_}) point->cut.resize(cuts_.size());
  std::fill(unit_.cut.begin(), unit_.cut.end(), 1.0);
  set_steps();
  restart();
  return found;
}

void PrimalDual::charge_cuts() {
  if (cuts_.size() == 0) return;
  std::fill(charged_.edge.begin(), charged_.edge.end(), 0.0);
  std::fill(charged_.configuration.begin(), charged_.configuration.end(), 0.0);
  for (std::size_t i = 0; i < cuts_.size(); ++i)
    cuts_.charge(cuts_.all()[i], now_.cut[i], charged_.edge, charged_.configuration);
}

void PrimalDual::add_cut_sums() {
  for (std::size_t i = 0; i < cuts_.size(); ++i) {
    const Cuts::Cut& cut = cuts_.all()[i];
    for (std::uint32_t t = cut.first; t < cut.end; ++t) {
      step_.edge[cuts_.terms()[t].edge] += cuts_.terms()[t].charge;
      step_.cut[i] += cuts_.terms()[t].charge;
    }
    const Flat::Kernel& kernel = flat_.kernels[cut.kernel];
    for (std::uint32_t c = kernel.first; c < kernel.end; ++c) {
      step_.configuration[c] += cuts_.less()[cut.less + c - kernel.first];
      step_.cut[i] += cuts_.less()[cut.less + c - kernel.first];
    }
  }
}

void PrimalDual::list_weights(std::uint32_t k) {
  weights_.clear();
  const auto add = [&](double now, double step, double violation) {
    weights_.push_back({now + weight_ * step * violation, step});
  };
  add(now_.overlap[k], step_.overlap[k], asked_.overlap[k]);
  add(now_.haste[k], step_.haste[k], asked_.haste[k]);
  for (const std::uint32_t i : cuts_.of(k))
    add(now_.cut[i], step_.cut[i], cuts_.violation(cuts_.all()[i], ahead_.edge, ahead_.configuration));
}

/// Projects the weights to the nearest ones, measured in their steps, that are at least 0 and at most 1
/// together.
void PrimalDual::share_weights() {
  double over = 0;
  for (bool goes_on = true; goes_on;) {
    double sum = 0, rate = 0;
    for (const Weight& one : weights_) {
      if (one.price <= over * one.step) continue;
      sum += one.price;
      rate += one.step;
    }
    const double next = sum > 1 && rate > 0 ? (sum - 1) / rate : 0;
    goes_on = next > over;
    over = std::max(over, next);
  }
  for (Weight& one : weights_) one.price = std::max(0.0, one.price - over * one.step);
}

}  // namespace terrace::autotm

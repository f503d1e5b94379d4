// SPDX-License-Identifier: Apache-2.0
#include "planners/autotm/solver/relaxation.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace terrace::autotm {
namespace {

/// What rounding may have added to a bound, as a share of its absolute terms, with much to spare.
constexpr double kRounding = 1e-9;

}  // namespace

void Multipliers::share_overlap() {
  for (std::size_t k = 0; k < overlap.size(); ++k) autotm::share_overlap(overlap[k], haste[k]);
}

Multipliers::Multipliers(const Flat& flat)
    : memory(flat.rows()),
      link(flat.links.size() + 1),
      overlap(flat.kernels.size() + 1),
      haste(flat.kernels.size() + 1) {}

void Demand::clear(const Flat& flat) {
  change.assign(flat.rows() + 1, 0.0);
  overlap.assign(flat.kernels.size() + 1, 0.0);
  haste.assign(flat.kernels.size() + 1, 0.0);
}

void Demand::add_to(std::vector<double>& memory, std::vector<double>& of_overlap,
                    std::vector<double>& of_haste) const {
  double held = 0;
  for (std::size_t r = 0; r + 1 < change.size(); ++r) memory[r] += held += change[r];
  for (std::size_t k = 0; k < overlap.size(); ++k) {
    of_overlap[k] += overlap[k];
    of_haste[k] += haste[k];
  }
}

Relaxation::Relaxation(const Flat& flat, Team& team)
    : flat_(flat),
      team_(team),
      middle_tensor_(Team::middle(flat.tensors, flat.edges.size())),
      middle_kernel_(Team::middle(flat.kernels, flat.configurations.size())),
      taken_(flat.kernels.size()),
      until_(flat.rows() + 1) {
  subgradient_.memory.resize(flat.rows() + 1);
  subgradient_.link.resize(flat.links.size() + 1);
  subgradient_.overlap.resize(flat.kernels.size() + 1);
  subgradient_.haste.resize(flat.kernels.size() + 1);
}

double Relaxation::bound(const Multipliers& multipliers) {
  for (std::uint32_t r = 0; r < flat_.rows(); ++r) until_[r + 1] = until_[r] + multipliers.memory[r];
  if (cuts_ != nullptr && cuts_->size() > 0) charge_cuts(multipliers);
  for (std::uint32_t r = 0; r < flat_.rows(); ++r) subgradient_.memory[r] = -flat_.room[r];
  for (Half& half : halves_) half.sum = half.absolute = 0;
  const auto kernels = static_cast<std::uint32_t>(flat_.kernels.size());
  const auto tensors = static_cast<std::uint32_t>(flat_.tensors.size());
  team_.halves(middle_kernel_, kernels, [&](unsigned half, std::uint32_t first, std::uint32_t end) {
    for (std::uint32_t k = first; k < end; ++k) halves_[half].add(add_kernel(k, multipliers));
  });
  team_.halves(middle_tensor_, tensors, [&](unsigned half, std::uint32_t first, std::uint32_t end) {
    add_tensors(halves_[half], first, end, multipliers);
  });
  for (const Half& half : halves_)
    half.demand.add_to(subgradient_.memory, subgradient_.overlap, subgradient_.haste);
  double given = 0;
  for (std::uint32_t r = 0; r < flat_.rows(); ++r) given += multipliers.memory[r] * flat_.room[r];
  const double absolute = halves_[0].absolute + halves_[1].absolute;
  return halves_[0].sum + halves_[1].sum - given - kRounding * (absolute + given);
}

void Relaxation::add_tensors(Half& half, std::uint32_t first, std::uint32_t end,
                             const Multipliers& multipliers) {
  half.demand.clear(flat_);
  half.least.resize(flat_.most_nodes);
  half.by.resize(flat_.most_nodes);
  for (std::uint32_t t = first; t < end; ++t) half.add(add_tensor(half, flat_.tensors[t], multipliers));
}

void Relaxation::charge_cuts(const Multipliers& multipliers) {
  charge_.assign(flat_.edges.size(), 0.0);
  less_.assign(flat_.configurations.size(), 0.0);
  for (std::size_t i = 0; i < multipliers.cut.size(); ++i) {
    if (multipliers.cut[i] > 0) cuts_->charge(cuts_->all()[i], multipliers.cut[i], charge_, less_);
  }
}

double Relaxation::add_tensor(Half& half, const Flat::Tensor& tensor, const Multipliers& multipliers) {
  std::vector<double>& least = half.least;
  std::fill_n(least.begin(), tensor.nodes, kImpossible);
  least[0] = 0;
  for (std::uint32_t e = tensor.first; e < tensor.end; ++e) {
    const Flat::Edge& edge = flat_.edges[e];
    double cost = least[edge.from] + edge.wait + tensor.size * (until_[edge.end] - until_[edge.first]) -
                  multipliers.link[edge.slot];
    if (flat_.is_beside(edge)) {
      cost += flat_.hidden[e].share * multipliers.overlap[edge.beside] +
              flat_.hidden[e].slower * multipliers.haste[edge.beside] + (charge_.empty() ? 0 : charge_[e]);
    }
    if (cost < least[edge.to]) {
      least[edge.to] = cost;
      half.by[edge.to] = e;
    }
  }
  for (std::uint32_t node = tensor.nodes - 1; node != 0; node = flat_.edges[half.by[node]].from)
    take(half, tensor, flat_.edges[half.by[node]]);
  return least[tensor.nodes - 1];
}

void Relaxation::take(Half& half, const Flat::Tensor& tensor, const Flat::Edge& edge) {
  half.demand.change[edge.first] += tensor.size;
  half.demand.change[edge.end] -= tensor.size;
  if (edge.slot != flat_.none()) subgradient_.link[edge.slot] -= 1;
  if (!flat_.is_beside(edge)) return;
  half.demand.overlap[edge.beside] += flat_.hidden_of(edge).share;
  half.demand.haste[edge.beside] += flat_.hidden_of(edge).slower;
}

double Relaxation::add_kernel(std::uint32_t k, const Multipliers& multipliers) {
  const Flat::Kernel& kernel = flat_.kernels[k];
  std::array<double, 64> price;
  std::fill_n(price.begin(), kernel.groups, 0.0);
  for (std::uint32_t l = kernel.first_link; l < kernel.end_link; ++l)
    price[flat_.links[l].group] += multipliers.link[l];
  const double own = 1 - multipliers.overlap[k] - multipliers.haste[k];
  const double fastest = flat_.configurations[kernel.first].time, sure = multipliers.haste[k] * fastest;
  double least = kImpossible;
  const Flat::Configuration* best = nullptr;
  for (std::uint32_t c = kernel.first; c < kernel.end; ++c) {
    const Flat::Configuration& one = flat_.configurations[c];
    double cost = own * one.time + sure - (less_.empty() ? 0 : less_[c]);
    if (cost >= least) break;  // they ascend
    cost += multipliers.memory[one.row] * one.scratch;
    for (std::uint64_t left = one.mask; left != 0; left &= left - 1)
      cost += price[static_cast<std::size_t>(std::countr_zero(left))];
    if (cost < least) {
      least = cost;
      best = &one;
    }
  }
  for (std::uint32_t l = kernel.first_link; l < kernel.end_link; ++l)
    subgradient_.link[l] = static_cast<double>(best->mask >> flat_.links[l].group & 1U);
  taken_[k] = static_cast<std::uint32_t>(best - flat_.configurations.data());
  subgradient_.memory[best->row] += best->scratch;
  subgradient_.overlap[k] = -best->time;
  subgradient_.haste[k] = fastest - best->time;
  return least;
}

}  // namespace terrace::autotm

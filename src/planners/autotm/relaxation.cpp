#include "planners/autotm/relaxation.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace terrace::autotm {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Of the absolute terms of a bound: what rounding may have added to it, with much to spare.
constexpr double kRounding = 1e-9;

}  // namespace

void Prices::share_overlap() {
  for (std::size_t k = 0; k < overlap.size(); ++k) autotm::share_overlap(overlap[k], haste[k]);
}

Prices::Prices(const Flat& flat)
    : memory(flat.rows()),
      link(2 * flat.links.size() + 1),
      overlap(flat.kernels.size() + 1),
      haste(flat.kernels.size() + 1) {}

Relaxation::Relaxation(const Flat& flat)
    : flat_(flat),
      taken_(flat.kernels.size()),
      until_(flat.rows() + 1),
      least_(flat.most_nodes),
      by_(flat.most_nodes) {
  broken_.memory.resize(flat.rows() + 1);
  broken_.link.resize(2 * flat.links.size() + 1);
  broken_.overlap.resize(flat.kernels.size() + 1);
  broken_.haste.resize(flat.kernels.size() + 1);
}

double Relaxation::bound(const Prices& prices) {
  for (std::uint32_t r = 0; r < flat_.rows(); ++r) until_[r + 1] = until_[r] + prices.memory[r];
  for (auto* all : {&broken_.memory, &broken_.link, &broken_.overlap, &broken_.haste})
    std::fill(all->begin(), all->end(), 0.0);
  if (cuts_ != nullptr && cuts_->size() > 0) charge_cuts(prices);
  double sum = 0, absolute = 0;
  for (const Flat::Tensor& tensor : flat_.tensors) {
    const double least = add_tensor(tensor, prices);
    sum += least;
    absolute += std::abs(least);
  }
  double held = 0, given = 0;
  for (std::uint32_t r = 0; r < flat_.rows(); ++r) {
    held += broken_.memory[r];
    broken_.memory[r] = held - flat_.room[r];
    given += prices.memory[r] * flat_.room[r];
  }
  for (std::uint32_t k = 0; k < flat_.kernels.size(); ++k) {
    const double least = add_kernel(k, prices);
    sum += least;
    absolute += std::abs(least);
  }
  return sum - given - kRounding * (absolute + given);
}

void Relaxation::charge_cuts(const Prices& prices) {
  charge_.assign(flat_.edges.size(), 0.0);
  less_.assign(flat_.configurations.size(), 0.0);
  for (std::size_t i = 0; i < prices.cut.size(); ++i) {
    if (prices.cut[i] > 0) cuts_->charge(cuts_->all()[i], prices.cut[i], charge_, less_);
  }
}

double Relaxation::add_tensor(const Flat::Tensor& tensor, const Prices& prices) {
  std::fill_n(least_.begin(), tensor.nodes, kNever);
  least_[0] = 0;
  for (std::uint32_t e = tensor.first; e < tensor.end; ++e) {
    const Flat::Edge& edge = flat_.edges[e];
    double cost = least_[edge.from] + edge.wait + tensor.size * (until_[edge.end] - until_[edge.first]) -
                  prices.link[edge.slot];
    if (flat_.is_beside(edge)) {
      cost += flat_.hidden[e].share * prices.overlap[edge.beside] +
              flat_.hidden[e].slower * prices.haste[edge.beside] + (charge_.empty() ? 0 : charge_[e]);
    }
    if (cost < least_[edge.to]) {
      least_[edge.to] = cost;
      by_[edge.to] = e;
    }
  }
  for (std::uint32_t node = tensor.nodes - 1; node != 0; node = flat_.edges[by_[node]].from)
    take(tensor, flat_.edges[by_[node]]);
  return least_[tensor.nodes - 1];
}

void Relaxation::take(const Flat::Tensor& tensor, const Flat::Edge& edge) {
  broken_.memory[edge.first] += tensor.size;
  broken_.memory[edge.end] -= tensor.size;
  broken_.link[edge.slot] -= 1;
  if (!flat_.is_beside(edge)) return;
  broken_.overlap[edge.beside] += flat_.hidden_of(edge).share;
  broken_.haste[edge.beside] += flat_.hidden_of(edge).slower;
}

double Relaxation::add_kernel(std::uint32_t k, const Prices& prices) {
  const Flat::Kernel& kernel = flat_.kernels[k];
  std::array<double, 64> price;
  std::fill_n(price.begin(), kernel.groups, 0.0);
  for (std::uint32_t l = kernel.first_link; l < kernel.end_link; ++l)
    price[flat_.links[l].group] += prices.link[l];
  const double own = 1 - prices.overlap[k] - prices.haste[k];
  const double fastest = flat_.configurations[kernel.first].time, sure = prices.haste[k] * fastest;
  double least = kNever;
  const Flat::Configuration* best = nullptr;
  for (std::uint32_t c = kernel.first; c < kernel.end; ++c) {
    const Flat::Configuration& one = flat_.configurations[c];
    double cost = own * one.time + sure - (less_.empty() ? 0 : less_[c]);
    if (cost >= least) break;  // they ascend
    cost += prices.memory[one.row] * one.scratch;
    for (std::uint64_t left = one.mask; left != 0; left &= left - 1)
      cost += price[static_cast<std::size_t>(std::countr_zero(left))];
    if (cost < least) {
      least = cost;
      best = &one;
    }
  }
  for (std::uint32_t l = kernel.first_link; l < kernel.end_link; ++l)
    broken_.link[l] += static_cast<double>(best->mask >> flat_.links[l].group & 1U);
  taken_[k] = static_cast<std::uint32_t>(best - flat_.configurations.data());
  broken_.memory[best->row] += best->scratch;
  broken_.overlap[k] -= best->time;
  broken_.haste[k] -= best->time - fastest;
  return least;
}

}  // namespace terrace::autotm

// SPDX-License-Identifier: Apache-2.0
#include "planners/autotm/solver/placement.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace terrace::autotm {
namespace {

/// A tiny cost of memory, so that no tensor stays in fast memory for nothing.
constexpr double kLeastFee = 1e-6;
constexpr std::size_t kNeighbours = 4096;

}  // namespace

void Placement::set_multipliers(const Multipliers& multipliers) {
  multipliers_ = &multipliers;
  for (std::uint32_t r = 0; r < flat_.rows(); ++r) until_[r + 1] = until_[r] + multipliers.memory[r];
}

void Placement::sweep(Trust trust, SplitMix& random) {
  set_trust(trust);
  shuffle(random);
  for (const std::uint32_t tensor : order_) choose(tensor);
  for (std::uint32_t k = 0; k < flat_.kernels.size(); ++k) {
    if (!flat_.kernels[k].has_scratch) continue;
    release_scratch(k);
    set_configuration(k);
  }
}

/// Shuffles among neighbours only, which share kernels: a wider shuffle would find nothing of a large problem
/// in the cache.
void Placement::shuffle(SplitMix& random) {
  order_.resize(flat_.tensors.size());
  std::iota(order_.begin(), order_.end(), 0U);
  for (std::size_t first = 0; first < order_.size(); first += kNeighbours) {
    for (std::size_t i = std::min(order_.size(), first + kNeighbours); i > first + 1; --i)
      std::swap(order_[i - 1], order_[first + random.below(i - first)]);
  }
}

void Placement::choose(std::uint32_t t) {
  const Flat::Tensor& tensor = flat_.tensors[t];
  before_ = paths_[t];
  remove(t);
  value_links(tensor, before_);
  settle(t, [&](const Flat::Edge& edge) {
    return move_cost(edge) + memory_cost(tensor, edge) + worth_[edge.slot];
  });
}

void Placement::follow(std::uint32_t t, std::span<const double> shares) {
  before_ = paths_[t];
  remove(t);
  settle(t, [&](const Flat::Edge& edge) {
    return std::max(0.0, 1 - shares[static_cast<std::size_t>(&edge - flat_.edges.data())]);
  });
}

template <class Cost>
void Placement::settle(std::uint32_t t, Cost cost) {
  const Flat::Tensor& tensor = flat_.tensors[t];
  const bool found = find(tensor, [&](const Flat::Edge& edge, double limit) {
    const double its = cost(edge);
    return its < limit && fits(tensor, edge) ? its : kImpossible;
  });
  if (found && path_ != before_) {
    add(t, path_);
    if (configure_kernels(t) && has_room(t)) return;
    remove(t);
  }
  add(t, before_);
  configure_kernels(t);
}

bool Placement::exchange(std::span<const std::uint32_t> tensors, std::span<const Path> paths) {
  for (const std::uint32_t t : tensors) remove(t);
  for (std::size_t i = 0; i < tensors.size(); ++i) add(tensors[i], paths[i]);
  bool all = true;
  for (const std::uint32_t t : tensors) all = configure_kernels(t) && all;
  return all && std::all_of(tensors.begin(), tensors.end(), [&](std::uint32_t t) { return has_room(t); });
}

void Placement::value_links(const Flat::Tensor& tensor, const Path& path) {
  for (const std::uint32_t e : path) {
    if (flat_.edges[e].slot == flat_.none()) continue;
    const std::uint32_t l = link(flat_.edges[e]);
    if (flat_.links[l].is_first) value_operand(tensor, l);
  }
}

/// Sets what the operand costs its kernel with its first links not kept, for each number of them. The slots
/// of a path add up to that.
void Placement::value_operand(const Flat::Tensor& tensor, std::uint32_t first) {
  const std::uint32_t k = flat_.links[first].kernel, count = flat_.links[first].more + 1;
  std::uint64_t slow = slow_groups(k, first, first + count);
  double priced = 0;
  for (std::uint32_t l = first; l < first + count; ++l)
    priced += multipliers_->link[l] + trust_.hope * flat_.links[l].worth;
  const auto value = [&](std::int64_t taken) {
    const std::uint32_t c = configure(k, slow, taken);
    return c == kNone ? kImpossible : (1 - trust_.link) * cost(k, c) - trust_.link * priced;
  };
  double before = value(tensor.bytes);
  worth_[first] = before;
  for (std::uint32_t l = first; l < first + count; ++l) {
    slow |= std::uint64_t{1} << flat_.links[l].group;
    priced -= multipliers_->link[l] + trust_.hope * flat_.links[l].worth;
    const double without = value(0);
    if (l > first) worth_[l] = 0;
    worth_[flat_.none() + 1 + l] = l == first ? without : before == kImpossible ? 0 : without - before;
    before = without;
  }
}

double Placement::memory_cost(const Flat::Tensor& tensor, const Flat::Edge& edge) const {
  const double rows = edge.end - edge.first;
  return tensor.size *
         (trust_.memory * (until_[edge.end] - until_[edge.first]) + (kLeastFee + trust_.fee) * fee_ * rows);
}

double Placement::move_cost(const Flat::Edge& edge) const {
  if (!flat_.is_beside(edge)) return edge.wait;
  const double kernel = flat_.configurations[configuration_[edge.beside]].time;
  const double longer = std::max(kernel, beside_[edge.beside] + flat_.time(edge)) - kernel_time(edge.beside);
  return (1 - trust_.link) * longer +
         trust_.link * (edge.wait + multipliers_->overlap[edge.beside] * flat_.hidden_of(edge).share +
                        multipliers_->haste[edge.beside] * flat_.hidden_of(edge).slower +
                        multipliers_->charge[static_cast<std::size_t>(&edge - flat_.edges.data())]);
}

bool Placement::fits(const Flat::Tensor& tensor, const Flat::Edge& edge) const {
  return edge.first >= edge.end || loads_.most(edge.first, edge.end) + tensor.bytes <= capacity();
}

}  // namespace terrace::autotm

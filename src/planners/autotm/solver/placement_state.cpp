// SPDX-License-Identifier: Apache-2.0
// What a placement holds: memory of each row, the places of links, configurations, moves beside kernels.
#include "planners/autotm/solver/placement.hpp"

namespace terrace::autotm {
bool Placement::has_room(std::uint32_t t) const {
  for (const std::uint32_t e : paths_[t]) {
    const Flat::Edge& edge = flat_.edges[e];
    if (loads_.most(edge.first, edge.end) > capacity()) return false;
    if (edge.slot == flat_.none()) continue;
    const std::uint32_t k = flat_.links[link(edge)].kernel;
    if (flat_.kernels[k].has_scratch && left(scratch_[k].row) < 0) return false;
  }
  return true;
}

void Placement::remove(std::uint32_t t) {
  const Flat::Tensor& tensor = flat_.tensors[t];
  for (const std::uint32_t e : paths_[t]) {
    const Flat::Edge& edge = flat_.edges[e];
    loads_.add(edge.first, edge.end, -tensor.bytes);
    move_beside(edge.beside, -flat_.time(edge));
    if (edge.slot != flat_.none()) release_scratch(flat_.links[link(edge)].kernel);
  }
  paths_[t].clear();
}

void Placement::add(std::uint32_t t, const Path& path) {
  const Flat::Tensor& tensor = flat_.tensors[t];
  paths_[t] = path;
  for (const std::uint32_t e : path) {
    const Flat::Edge& edge = flat_.edges[e];
    loads_.add(edge.first, edge.end, tensor.bytes);
    move_beside(edge.beside, flat_.time(edge));
    if (edge.slot != flat_.none()) fast_[link(edge)] = edge.slot < flat_.none();
  }
}

/// Adds the time of a move beside a kernel, or of one that all wait for, which is beside none.
void Placement::move_beside(std::uint32_t k, double time) {
  if (k == flat_.kernels.size()) return void(time_ += time);
  time_ -= kernel_time(k);
  beside_[k] += time;
  time_ += kernel_time(k);
}

bool Placement::configure_kernels(std::uint32_t t) {
  bool all = true;
  for (const std::uint32_t e : paths_[t]) {
    const Flat::Edge& edge = flat_.edges[e];
    if (edge.slot == flat_.none()) continue;
    const std::uint32_t k = flat_.links[link(edge)].kernel;
    release_scratch(k);
    all = set_configuration(k) && all;
  }
  return all;
}

std::uint32_t Placement::link(const Flat::Edge& edge) const {
  return edge.slot < flat_.none() ? edge.slot : edge.slot - flat_.none() - 1;
}

std::uint64_t Placement::slow_groups(std::uint32_t k, std::uint32_t but_first, std::uint32_t but_end) const {
  std::uint64_t slow = 0;
  for (std::uint32_t l = flat_.kernels[k].first_link; l < flat_.kernels[k].end_link; ++l) {
    if (fast_[l] == 0 && (l < but_first || l >= but_end)) slow |= std::uint64_t{1} << flat_.links[l].group;
  }
  return slow;
}

double Placement::cost(std::uint32_t k, std::uint32_t c) const {
  const Flat::Configuration& one = flat_.configurations[c];
  const double memory =
      multipliers_ == nullptr ? 0 : trust_.memory * multipliers_->memory[one.row] * one.scratch;
  return std::max(one.time, beside_[k]) + memory;
}

std::uint32_t Placement::configure(std::uint32_t k, std::uint64_t slow, std::int64_t taken) const {
  double least = kImpossible;
  std::uint32_t best = kNone;
  for (std::uint32_t c = flat_.kernels[k].first; c < flat_.kernels[k].end; ++c) {
    const Flat::Configuration& one = flat_.configurations[c];
    if (one.time >= least) break;  // they ascend
    if ((one.mask & slow) != 0) continue;
    if (one.bytes > 0 && one.bytes > left(one.row) - (flat_.pool(one.row) == 0 ? taken : 0)) continue;
    if (const double its = cost(k, c); its < least) {
      least = its;
      best = c;
    }
  }
  return best;
}

void Placement::hold_scratch(std::uint32_t k, std::uint32_t row, std::int64_t bytes) {
  if (!flat_.kernels[k].has_scratch) return;
  if (scratch_[k].bytes > 0) loads_.add(scratch_[k].row, scratch_[k].row + 1, -scratch_[k].bytes);
  if (bytes > 0) loads_.add(row, row + 1, bytes);
  scratch_[k] = {row, bytes};
}

/// Chooses the kernel's configuration anew. Returns whether one fits. pre: the kernel holds no scratch
bool Placement::set_configuration(std::uint32_t k) {
  time_ -= kernel_time(k);
  configuration_[k] = configure(k, slow_groups(k), 0);
  time_ += kernel_time(k);
  if (configuration_[k] == kNone) return false;
  const Flat::Configuration& one = flat_.configurations[configuration_[k]];
  hold_scratch(k, one.row, one.bytes);
  return true;
}

double Placement::kernel_time(std::uint32_t k) const {
  const double own = configuration_[k] == kNone ? 0 : flat_.configurations[configuration_[k]].time;
  return std::max(own, beside_[k]);
}

Solution Placement::solution() const {
  Solution made;
  for (const Path& path : paths_) {
    auto& edges = made.paths.emplace_back();
    for (const std::uint32_t e : path) {
      if (flat_.original[e] != kNone) edges.push_back(flat_.original[e]);
    }
  }
  for (const std::uint32_t c : configuration_) made.configurations.push_back(flat_.configurations[c].index);
  return made;
}

}  // namespace terrace::autotm

// SPDX-License-Identifier: Apache-2.0
// Where a placement begins: every tensor takes as little as it can, and where that is too much for some row,
// goes where there is room.
#include "planners/autotm/solver/placement.hpp"

namespace terrace::autotm {
namespace {

constexpr int kRepairs = 20;
/// How much more a row that is too full costs than all other rows of a path.
constexpr double kInTheWay = 1e6;

}  // namespace

Placement::Placement(const Flat& flat)
    : flat_(flat),
      loads_(flat.rows()),
      paths_(flat.tensors.size()),
      fast_(flat.links.size()),
      configuration_(flat.kernels.size(), kNone),
      beside_(flat.kernels.size() + 1),
      fee_(flat.memory_worth()),
      until_(flat.rows() + 1),
      worth_(2 * flat.links.size() + 1),
      least_(flat.most_nodes),
      by_(flat.most_nodes) {
  for (std::uint32_t k = 0; k < flat.kernels.size(); ++k) scratch_.push_back({k + 1, 0});
  for (std::uint32_t pool = 1; pool < flat.capacity.size(); ++pool)
    loads_.add(pool * flat.moments, (pool + 1) * flat.moments, capacity() - flat.capacity[pool]);
  for (std::uint32_t t = 0; t < flat.tensors.size(); ++t) {
    if (!find(flat.tensors[t], [&](const Flat::Edge& edge, double) { return least_cost(edge); })) {
      is_complete_ = false;
      return;
    }
    add(t, path_);
  }
  if (is_overfull()) repair();
  for (std::uint32_t k = 0; k < flat.kernels.size(); ++k) is_complete_ = set_configuration(k) && is_complete_;
}

/// Returns how many rows the edge takes, each weighted by how large a part of its pool a byte is.
double Placement::least_cost(const Flat::Edge& edge) const {
  if (edge.first >= edge.end) return 0;
  const auto share = static_cast<double>(std::max<std::int64_t>(1, capacity())) /
                     static_cast<double>(std::max<std::int64_t>(1, flat_.capacity[flat_.pool(edge.first)]));
  return static_cast<double>(edge.end - edge.first) * share;
}

/// Gives one tensor after the other its least path again, where a row that it would overfill costs much more
/// than any that it would not.
void Placement::repair() {
  const double unit = flat_.unit;
  for (int pass = 0; pass < kRepairs && is_overfull(); ++pass) {
    for (std::uint32_t t = 0; t < flat_.tensors.size(); ++t) {
      const Flat::Tensor& tensor = flat_.tensors[t];
      remove(t);
      find(tensor, [&](const Flat::Edge& edge, double) {
        const std::int64_t over = loads_.most(edge.first, edge.end) + tensor.bytes - capacity();
        const bool is_over = edge.first < edge.end && over > 0;
        return least_cost(edge) + (is_over ? kInTheWay * (1 + static_cast<double>(over) / unit) : 0);
      });
      add(t, path_);
    }
  }
}

bool Placement::is_overfull() const { return loads_.most(0, flat_.rows()) > capacity(); }

bool Placement::can_avoid(const Flat::Tensor& tensor, std::uint32_t row) {
  return find(tensor, [&](const Flat::Edge& edge, double) {
    return edge.first <= row && row < edge.end ? kImpossible : 0.0;
  });
}

Shortage Placement::shortage() {
  Shortage worst;
  std::int64_t most = 0;
  for (std::uint32_t row = 0; row < flat_.rows(); ++row) {
    const std::int64_t bytes = loads_.most(row, row + 1) + least_scratch(row);
    if (bytes <= most) continue;
    most = bytes;
    worst.row = row;
  }
  worst.bytes = least_scratch(worst.row);
  for (const Flat::Tensor& tensor : flat_.tensors)
    worst.bytes += can_avoid(tensor, worst.row) ? 0 : tensor.bytes;
  return worst;
}

std::int64_t Placement::least_scratch(std::uint32_t row) const {
  const std::uint32_t moment = row % flat_.moments;
  if (moment == 0 || moment > flat_.kernels.size()) return 0;
  const Flat::Kernel& kernel = flat_.kernels[moment - 1];
  std::int64_t least = kernel.first < kernel.end ? std::numeric_limits<std::int64_t>::max() : 0;
  for (std::uint32_t c = kernel.first; c < kernel.end; ++c) {
    const Flat::Configuration& one = flat_.configurations[c];
    least = std::min(least, one.row == row ? one.bytes : 0);
  }
  return least;
}

}  // namespace terrace::autotm

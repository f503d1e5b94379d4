// SPDX-License-Identifier: Apache-2.0
// Where the primal-dual steps begin, and how long they are in each coordinate.
#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.hpp"
#include "planners/autotm/solver/primal_dual.hpp"

namespace terrace::autotm {
namespace {

/// A link that is worth less than this share of a kernel's mean time has this as its unit.
constexpr double kLeastUnit = 1e-3;
constexpr double kMemoryUnit = 2;
/// The unit of a row's multiplier grows with it, and with a share of their mean so that no row is left out.
constexpr double kPriceUnit = 4, kMeanShare = 0.3;
/// Sums below it are what rounding left of nothing.
constexpr double kNothing = 1e-12;

}  // namespace

void PrimalDual::list_configurations() {
  const auto count = static_cast<std::size_t>(std::count(taken_.begin(), taken_.end(), true));
  std::vector<double> shares;
  std::vector<std::uint32_t> listed;
  shares.reserve(count);
  listed.reserve(count);
  configurations_.clear();
  configurations_.reserve(count);
  first_.assign(1, 0);
  std::size_t before = 0;
  for (const Flat::Kernel& kernel : flat_.kernels) {
    for (std::uint32_t c = kernel.first; c < kernel.end; ++c) {
      if (!taken_[c]) continue;
      const bool was = before < listed_.size() && listed_[before] == c;
      shares.push_back(was ? next_.configuration[before++] : 0);
      listed.push_back(c);
      configurations_.push_back(flat_.configurations[c]);
    }
    first_.push_back(static_cast<std::uint32_t>(listed.size()));
  }
  const auto is_before = [half = Team::middle(listed.size())](std::uint32_t first) { return first < half; };
  const auto middle = std::partition_point(first_.begin(), first_.end() - 1, is_before);
  middle_kernel_ = static_cast<std::uint32_t>(middle - first_.begin());
  listed_ = std::move(listed);
  now_.configuration = next_.configuration = std::move(shares);
}

void PrimalDual::offer(std::span<const std::uint32_t> configurations) {
  for (const std::uint32_t c : configurations) {
    has_offers_ = has_offers_ || !taken_[c];
    taken_[c] = true;
  }
}

void PrimalDual::list_offers() {
  has_offers_ = false;
  list_configurations();
  for (Point* point : {&step_, &charged_, &ahead_}) point->configuration.resize(configurations_.size());
}

void PrimalDual::begin() {
  charge_cuts();
  for (std::uint32_t r = 0; r < flat_.rows(); ++r) until_[r + 1] = until_[r] + now_.memory[r];
  each_tensor(asked_, [&](Half&, std::uint32_t t) { begin_tensor(t); });
  each_kernel([&](std::uint32_t k) { begin_kernel(k); });
}

/// A node's multiplier is what the rest of the best path from there costs.
void PrimalDual::begin_tensor(std::uint32_t t) {
  const Flat::Tensor& tensor = flat_.tensors[t];
  double* rest = now_.node.data() + first_node_[t];
  std::fill_n(rest, tensor.nodes - 1, kImpossible);
  std::vector<std::uint32_t> by(tensor.nodes, kNone);
  for (std::uint32_t e = tensor.end; e-- > tensor.first;) {
    const Flat::Edge& edge = flat_.edges[e];
    const double cost = rest[edge.to] + edge.wait + flat_.hidden[e].share * now_.overlap[edge.beside] +
                        flat_.hidden[e].slower * now_.haste[edge.beside] +
                        (overlaps_ ? charged_.edge[e] : 0) +
                        tensor.size * (until_[edge.end] - until_[edge.first]) - now_.link[edge.slot];
    if (cost >= rest[edge.from]) continue;
    rest[edge.from] = cost;
    by[edge.from] = e;
  }
  for (std::uint32_t node = 0; by[node] != kNone; node = flat_.edges[by[node]].to) now_.edge[by[node]] = 1;
  // What is left are nodes that merged edges pass over.
  std::replace(rest, rest + tensor.nodes, kImpossible, 0.0);
}

void PrimalDual::begin_kernel(std::uint32_t k) {
  const Flat::Kernel& kernel = flat_.kernels[k];
  const double own = 1 - now_.overlap[k] - now_.haste[k];
  const double sure = now_.haste[k] * flat_.configurations[kernel.first].time;
  std::uint32_t best = first_[k];
  now_.kernel[k] = kImpossible;
  for (std::uint32_t c = first_[k]; c < first_[k + 1]; ++c) {
    const Flat::Configuration& one = configurations_[c];
    double cost = own * one.time + sure - charged_.configuration[c] + now_.memory[one.row] * one.scratch;
    for (std::uint32_t l = kernel.first_link; l < kernel.end_link; ++l)
      cost += flat_.asks(one, l) ? now_.link[l] : 0;
    if (cost >= now_.kernel[k]) continue;
    now_.kernel[k] = cost;
    best = c;
  }
  now_.configuration[best] = 1;
}

void PrimalDual::resume(const PrimalDual& other, const std::vector<std::uint32_t>& edges,
                        const std::vector<std::uint32_t>& configurations) {
  check(overlaps_, "all configurations have shares");
  for (std::size_t e = 0; e < edges.size(); ++e) {
    if (edges[e] != kNone) now_.edge[e] = other.next_.edge[edges[e]];
  }
  for (std::size_t c = 0; c < configurations.size(); ++c)
    now_.configuration[c] = configurations[c] == kNone ? 0 : other.next_.configuration[configurations[c]];
  start_ = next_ = now_;
  weight_ = 1;
  careful_stretches_ = 0;  // the shares are near the best, too
}

void PrimalDual::set_units() {
  double least = 0;
  for (const Flat::Kernel& kernel : flat_.kernels) least += flat_.configurations[kernel.first].time;
  least *= kLeastUnit / static_cast<double>(flat_.kernels.size() + 1);
  std::fill(unit_.memory.begin(), unit_.memory.end(), kMemoryUnit * flat_.memory_worth());
  std::fill(unit_.overlap.begin(), unit_.overlap.end(), 1.0);
  std::fill(unit_.haste.begin(), unit_.haste.end(), 1.0);
  std::fill(unit_.cut.begin(), unit_.cut.end(), 1.0);
  std::fill(unit_.link.begin(), unit_.link.end(), 0.0);
  std::fill(unit_.kernel.begin(), unit_.kernel.end(), least);
  std::vector<double> worth(flat_.tensors.size()), links(flat_.tensors.size());
  for (std::size_t l = 0; l < flat_.links.size(); ++l) {
    const Flat::Link& link = flat_.links[l];
    unit_.link[l] = link.worth;
    unit_.kernel[link.kernel] = std::max(unit_.kernel[link.kernel], link.worth);
    worth[link.tensor] += link.worth;
    ++links[link.tensor];
  }
  for (std::size_t t = 0; t < flat_.tensors.size(); ++t) {
    const double unit = std::max(least, links[t] > 0 ? worth[t] / links[t] : 0);
    std::fill_n(unit_.node.begin() + first_node_[t], flat_.tensors[t].nodes, unit);
  }
}

void PrimalDual::renew_units() {
  for (std::uint32_t first = 0; first < flat_.rows(); first += flat_.moments) {
    const auto multipliers = now_.memory.begin() + first;
    const double mean = std::accumulate(multipliers, multipliers + flat_.moments, 0.0) / flat_.moments;
    if (mean <= 0) continue;
    for (std::uint32_t r = first; r < first + flat_.moments; ++r)
      unit_.memory[r] = kPriceUnit * (now_.memory[r] + kMeanShare * mean);
  }
}

/// The step of a coordinate is one over the sum of its factors, multipliers being in their units: with that
/// no step is too long.
void PrimalDual::set_steps() {
  for (auto part : {&Point::edge, &Point::configuration, &Point::memory, &Point::link, &Point::overlap,
                    &Point::haste, &Point::cut, &Point::node, &Point::kernel})
    std::fill((step_.*part).begin(), (step_.*part).end(), 0.0);
  std::vector<double> until(flat_.rows() + 1);
  for (std::uint32_t r = 0; r < flat_.rows(); ++r) until[r + 1] = until[r] + unit_.memory[r];
  each_tensor(step_, [&](Half& half, std::uint32_t t) { add_tensor_sums(half.demand, t, until); });
  each_kernel([&](std::uint32_t k) { add_kernel_sums(k); });
  add_cut_sums();
  for (auto part : {&Point::edge, &Point::configuration}) {
    std::vector<double>& sums = step_.*part;
    team_.each(sums.size(), [&](std::size_t i) { sums[i] = sums[i] > 0 ? 1 / sums[i] : 0; });
  }
  for (auto part : {&Point::memory, &Point::link, &Point::overlap, &Point::haste, &Point::cut, &Point::node,
                    &Point::kernel}) {
    std::vector<double>&sums = step_.*part, &unit = unit_.*part;
    team_.each(sums.size(), [&](std::size_t i) { sums[i] = sums[i] > kNothing ? unit[i] / sums[i] : 0; });
  }
}

void PrimalDual::add_tensor_sums(Demand& demand, std::uint32_t t, const std::vector<double>& until) {
  const Flat::Tensor& tensor = flat_.tensors[t];
  for (std::uint32_t e = tensor.first; e < tensor.end; ++e) {
    const Flat::Edge& edge = flat_.edges[e];
    const Flat::Hidden& hidden = flat_.hidden[e];
    const std::uint32_t from = first_node_[t] + edge.from, to = first_node_[t] + edge.to;
    step_.edge[e] = tensor.size * (until[edge.end] - until[edge.first]) + unit_.link[edge.slot] +
                    hidden.share + hidden.slower + unit_.node[from] + unit_.node[to];
    demand.change[edge.first] += tensor.size;
    demand.change[edge.end] -= tensor.size;
    if (edge.slot != flat_.none()) step_.link[edge.slot] += 1;
    demand.overlap[edge.beside] += hidden.share;
    demand.haste[edge.beside] += hidden.slower;
    step_.node[from] += 1;
    step_.node[to] += 1;
  }
}

void PrimalDual::add_kernel_sums(std::uint32_t k) {
  const Flat::Kernel& kernel = flat_.kernels[k];
  const double fastest = flat_.configurations[kernel.first].time;
  for (std::uint32_t c = first_[k]; c < first_[k + 1]; ++c) {
    const Flat::Configuration& one = configurations_[c];
    double sum = unit_.kernel[k] + unit_.memory[one.row] * one.scratch;
    if (kernel.overlaps) sum += one.time + one.time - fastest;
    step_.overlap[k] += one.time;
    step_.haste[k] += one.time - fastest;
    step_.kernel[k] += 1;
    step_.memory[one.row] += one.scratch;
    for (std::uint32_t l = kernel.first_link; l < kernel.end_link; ++l) {
      if (!flat_.asks(one, l)) continue;
      sum += unit_.link[l];
      step_.link[l] += 1;
    }
    step_.configuration[c] = sum;
  }
}

}  // namespace terrace::autotm

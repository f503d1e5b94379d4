// SPDX-License-Identifier: Apache-2.0
#include "planners/autotm/solver/primal_dual.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace terrace::autotm {
namespace {

constexpr std::uint64_t kStepsPerCheck = 20;
/// Where tensors move, multipliers begin near the best but shares do not: what these violate at first says
/// little.
constexpr double kFirstWeight = 0.1, kMoreWeight = 1.6;
constexpr int kCarefulStretches = 3;
constexpr double kMuchLess = 0.2, kLess = 0.8, kLongStretch = 0.36;

}  // namespace

PrimalDual::PrimalDual(const Flat& flat, Team& team, Cuts& cuts, const Multipliers& multipliers,
                       std::vector<bool> taken)
    : flat_(flat),
      team_(team),
      cuts_(cuts),
      taken_(std::move(taken)),
      middle_tensor_(Team::middle(flat.tensors, flat.edges.size())),
      until_(flat.rows() + 1),
      multipliers_(multipliers),
      overlaps_(flat.overlaps()) {
  std::uint32_t nodes = 0;
  for (const Flat::Tensor& tensor : flat.tensors) {
    first_node_.push_back(nodes);
    nodes += tensor.nodes;
  }
  const std::size_t kernels = flat.kernels.size();
  now_.edge.resize(flat.edges.size());
  now_.memory = multipliers.memory;
  now_.memory.resize(flat.rows() + 1);
  now_.link = multipliers.link;
  now_.overlap = multipliers.overlap;
  now_.haste = multipliers.haste;
  now_.node.resize(nodes);
  now_.kernel.resize(kernels);
  now_.cut = multipliers.cut;
  now_.cut.resize(cuts.size());
  // Cuts are inequalities over all configurations, so all of them have shares.
  if (overlaps_) taken_.assign(flat.configurations.size(), true);
  list_configurations();
  next_ = step_ = now_;
  unit_.node.resize(nodes);
  for (auto part :
       {&Point::memory, &Point::link, &Point::overlap, &Point::haste, &Point::cut, &Point::kernel}) {
    for (Point* point : {&asked_, &unit_}) (point->*part).resize((now_.*part).size());
  }
  if (overlaps_) charged_.edge.resize(flat.edges.size());
  charged_.configuration.resize(configurations_.size());
  ahead_ = charged_;
  set_units();
  set_steps();
  begin();
  start_ = next_ = now_;
  const auto moves = [](const Flat::Edge& edge) { return edge.wait > 0; };
  if (std::any_of(flat.edges.begin(), flat.edges.end(), moves)) {
    weight_ = kFirstWeight;
    careful_stretches_ = kCarefulStretches;
  }
}

double PrimalDual::fractionality(std::uint32_t tensor) const {
  double most = 0;
  for (std::uint32_t e = flat_.tensors[tensor].first; e < flat_.tensors[tensor].end; ++e)
    most = std::max(most, std::min(next_.edge[e], 1 - next_.edge[e]));
  return most;
}

bool PrimalDual::step() {
  ++steps_;
  ++stretch_;
  away_ = static_cast<double>(stretch_) / static_cast<double>(stretch_ + 1);
  if (stretch_ != 1 && stretch_ % kStepsPerCheck != 0) {
    advance<false>();
    return false;
  }
  advance<true>();
  show_multipliers();
  if (is_settled()) {
    restart();
  } else {
    pull_back();
  }
  return true;
}

/// How much the latest step changed decides whether a new stretch begins.
bool PrimalDual::is_settled() {
  const Lengths moved = distance(now_, next_);
  const double change = std::sqrt(moved.primal * weight_ + moved.dual / weight_), before = last_change_;
  last_change_ = change;
  if (stretch_ == 1) {
    first_change_ = change;
    return false;
  }
  return change <= kMuchLess * first_change_ || (change <= kLess * first_change_ && change > before) ||
         static_cast<double>(stretch_) >= kLongStretch * static_cast<double>(steps_);
}

template <bool looks>
void PrimalDual::advance() {
  for (std::uint32_t r = 0; r < flat_.rows(); ++r) until_[r + 1] = until_[r] + now_.memory[r];
  charge_cuts();
  for (std::uint32_t r = 0; r < flat_.rows(); ++r) asked_.memory[r] = -flat_.room[r];
  each_kernel([&](std::uint32_t k) { move_configurations<looks>(k); });
  each_tensor(asked_, [&](Half& half, std::uint32_t t) { move_edges<looks>(half, t); });
  move_multipliers<looks>(&Point::memory, 0);
  move_multipliers<looks>(&Point::link, 0);
  move_multipliers<looks>(&Point::kernel, -kImpossible);
  if (overlaps_) move_overlap<looks>();
}

template <bool looks>
void PrimalDual::move_edges(Half& half, std::uint32_t t) {
  const double rate = 1 / weight_;
  const Flat::Tensor& tensor = flat_.tensors[t];
  const double* price = now_.node.data() + first_node_[t];
  std::vector<double>& asked = half.node;
  std::fill_n(asked.begin(), tensor.nodes, 0.0);
  asked[0] = 1;
  for (std::uint32_t e = tensor.first; e < tensor.end; ++e) {
    const Flat::Edge& edge = flat_.edges[e];
    const bool beside = flat_.is_beside(edge);
    double cost = edge.wait + tensor.size * (until_[edge.end] - until_[edge.first]) - now_.link[edge.slot] -
                  price[edge.from] + price[edge.to];
    if (beside)
      cost += flat_.hidden[e].share * now_.overlap[edge.beside] +
              flat_.hidden[e].slower * now_.haste[edge.beside] + charged_.edge[e];
    const double before = now_.edge[e];
    const double after = std::max(0.0, before - rate * step_.edge[e] * cost);
    const double ahead = 2 * after - before, held = tensor.size * ahead;
    (looks ? next_.edge[e] : now_.edge[e]) = looks ? after : pulled(before, after, start_.edge[e]);
    half.demand.change[edge.first] += held;
    half.demand.change[edge.end] -= held;
    if (edge.slot != flat_.none()) asked_.link[edge.slot] -= ahead;
    asked[edge.from] -= ahead;
    asked[edge.to] += ahead;
    if (!beside) continue;
    ahead_.edge[e] = ahead;
    half.demand.overlap[edge.beside] += flat_.hidden[e].share * ahead;
    half.demand.haste[edge.beside] += flat_.hidden[e].slower * ahead;
  }
  asked[tensor.nodes - 1] = 0;
  // No other tensor and no kernel uses these nodes, so their multipliers can move at once.
  for (std::uint32_t node = 0, i = first_node_[t]; node < tensor.nodes; ++node, ++i)
    set_multiplier<looks>(&Point::node, i, now_.node[i] + weight_ * step_.node[i] * asked[node]);
}

template <bool looks>
void PrimalDual::move_configurations(std::uint32_t k) {
  const double rate = 1 / weight_;
  const Flat::Kernel& kernel = flat_.kernels[k];
  std::array<double, 64> price, asked;
  std::fill_n(price.begin(), kernel.groups, 0.0);
  std::fill_n(asked.begin(), kernel.groups, 0.0);
  for (std::uint32_t l = kernel.first_link; l < kernel.end_link; ++l)
    price[flat_.links[l].group] += now_.link[l];
  const double own = 1 - now_.overlap[k] - now_.haste[k];
  const double fastest = flat_.configurations[kernel.first].time;
  const double base = now_.haste[k] * fastest - now_.kernel[k];
  double sum = 0, time = 0;
  for (std::uint32_t c = first_[k]; c < first_[k + 1]; ++c) {
    const Flat::Configuration& one = configurations_[c];
    double cost = base + own * one.time + now_.memory[one.row] * one.scratch - charged_.configuration[c];
    for (std::uint64_t left = one.mask; left != 0; left &= left - 1)
      cost += price[static_cast<std::size_t>(std::countr_zero(left))];
    const double before = now_.configuration[c];
    const double after = std::max(0.0, before - rate * step_.configuration[c] * cost);
    const double ahead = 2 * after - before;
    ahead_.configuration[c] = ahead;
    (looks ? next_.configuration[c] : now_.configuration[c]) =
        looks ? after : pulled(before, after, start_.configuration[c]);
    sum += ahead;
    asked_.memory[one.row] += ahead * one.scratch;
    time += ahead * one.time;
    for (std::uint64_t left = one.mask; left != 0; left &= left - 1)
      asked[static_cast<std::size_t>(std::countr_zero(left))] += ahead;
  }
  asked_.kernel[k] = 1 - sum;
  asked_.overlap[k] = -time;
  asked_.haste[k] = sum * fastest - time;
  for (std::uint32_t l = kernel.first_link; l < kernel.end_link; ++l)
    asked_.link[l] = asked[flat_.links[l].group];
}

template <bool looks>
void PrimalDual::move_multipliers(std::vector<double> Point::*multipliers, double least) {
  std::vector<double>&now = now_.*multipliers, &next = next_.*multipliers;
  const std::vector<double>&asked = asked_.*multipliers, &step = step_.*multipliers,
        &start = start_.*multipliers;
  team_.each(now.size(), [&](std::size_t i) {
    const double after = std::max(least, now[i] + weight_ * step[i] * asked[i]);
    (looks ? next[i] : now[i]) = looks ? after : pulled(now[i], after, start[i]);
  });
}

template <bool looks>
void PrimalDual::set_multiplier(std::vector<double> Point::*multipliers, std::size_t i, double after) {
  double& now = (now_.*multipliers)[i];
  (looks ? (next_.*multipliers)[i] : now) = looks ? after : pulled(now, after, (start_.*multipliers)[i]);
}

template <bool looks>
void PrimalDual::move_overlap() {
  for (std::uint32_t k = 0; k < flat_.kernels.size(); ++k) {
    if (!flat_.kernels[k].overlaps) continue;
    list_weights(k);
    share_weights();
    set_multiplier<looks>(&Point::overlap, k, weights_[0].price);
    set_multiplier<looks>(&Point::haste, k, weights_[1].price);
    for (std::size_t i = 0; i < cuts_.of(k).size(); ++i)
      set_multiplier<looks>(&Point::cut, cuts_.of(k)[i], weights_[2 + i].price);
  }
}

void PrimalDual::show_multipliers() {
  multipliers_.memory.assign(next_.memory.begin(), next_.memory.begin() + flat_.rows());
  multipliers_.link = next_.link;
  multipliers_.overlap = next_.overlap;
  multipliers_.haste = next_.haste;
  multipliers_.cut = next_.cut;
}

PrimalDual::Lengths PrimalDual::distance(const Point& a, const Point& b) const {
  Lengths found;
  const auto add = [&](double& sum, std::vector<double> Point::*part) {
    const std::vector<double>&one = a.*part, &other = b.*part, &step = step_.*part;
    sum += team_.sum(one.size(), [&](std::size_t i) {
      const double difference = one[i] - other[i];
      return step[i] > 0 ? difference * difference / step[i] : 0;
    });
  };
  add(found.primal, &Point::edge);
  add(found.primal, &Point::configuration);
  for (auto part : {&Point::memory, &Point::link, &Point::overlap, &Point::haste, &Point::cut, &Point::node,
                    &Point::kernel})
    add(found.dual, part);
  return found;
}

void PrimalDual::pull_back() {
  for (auto part : {&Point::edge, &Point::configuration, &Point::memory, &Point::link, &Point::overlap,
                    &Point::haste, &Point::cut, &Point::node, &Point::kernel}) {
    std::vector<double>&now = now_.*part, &next = next_.*part, &start = start_.*part;
    team_.each(now.size(), [&](std::size_t i) { now[i] = pulled(now[i], next[i], start[i]); });
  }
}

void PrimalDual::restart() {
  const Lengths moved = distance(next_, start_);
  if (moved.primal > 0 && moved.dual > 0) {
    const double balanced = std::sqrt(moved.dual / moved.primal);
    weight_ = std::sqrt(weight_ * std::clamp(balanced, weight_ * 1e-2, weight_ * 1e2));
  }
  if (careful_stretches_ > 0) {
    --careful_stretches_;
    weight_ *= kMoreWeight;
  }
  if (has_offers_) list_offers();
  now_ = start_ = next_;
  stretch_ = 0;
  renew_units();
  set_steps();
}

}  // namespace terrace::autotm

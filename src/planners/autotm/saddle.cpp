#include "planners/autotm/saddle.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace terrace::autotm {
namespace {

constexpr std::uint64_t kStepsPerLook = 20;
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kMuchLess = 0.2, kLess = 0.8, kLongStretch = 0.36;

}  // namespace

Saddle::Saddle(const Flat& flat, const Prices& prices)
    : flat_(flat), until_(flat.moments + 1), prices_(prices) {
  std::uint32_t nodes = 0;
  for (const Flat::Tensor& tensor : flat.tensors) {
    first_node_.push_back(nodes);
    nodes += tensor.nodes;
  }
  const std::size_t kernels = flat.kernels.size();
  now_.edge.resize(flat.edges.size());
  now_.configuration.resize(flat.configurations.size());
  now_.memory = prices.memory;
  now_.memory.resize(flat.moments + 1);
  now_.link = prices.link;
  now_.overlap = prices.overlap;
  now_.haste = prices.haste;
  now_.node.resize(nodes);
  now_.kernel.resize(kernels);
  next_ = asked_ = unit_ = step_ = now_;
  set_units();
  set_steps();
  for (const Flat::Kernel& kernel : flat.kernels) overlaps_ = overlaps_ || kernel.overlaps;
  begin();
  start_ = next_ = now_;
}

void Saddle::begin() {
  for (std::uint32_t m = 0; m < flat_.moments; ++m) until_[m + 1] = until_[m] + now_.memory[m];
  std::vector<std::uint32_t> by;
  for (std::size_t t = 0; t < flat_.tensors.size(); ++t) {
    const Flat::Tensor& tensor = flat_.tensors[t];
    double* rest = now_.node.data() + first_node_[t];
    std::fill_n(rest, tensor.nodes - 1, kNever);
    by.assign(tensor.nodes, kNone);
    for (std::uint32_t e = tensor.end; e-- > tensor.first;) {
      const Flat::Edge& edge = flat_.edges[e];
      const double cost = rest[edge.to] + edge.wait + flat_.hidden[e].share * now_.overlap[edge.beside] +
                          flat_.hidden[e].slower * now_.haste[edge.beside] +
                          tensor.size * (until_[edge.end] - until_[edge.first]) - now_.link[edge.slot];
      if (cost >= rest[edge.from]) continue;
      rest[edge.from] = cost;
      by[edge.from] = e;
    }
    for (std::uint32_t node = 0; by[node] != kNone; node = flat_.edges[by[node]].to) now_.edge[by[node]] = 1;
    // Nodes that edges were merged over.
    for (std::uint32_t node = 0; node < tensor.nodes; ++node)
      rest[node] = rest[node] == kNever ? 0 : rest[node];
  }
  for (std::uint32_t k = 0; k < flat_.kernels.size(); ++k) {
    const Flat::Kernel& kernel = flat_.kernels[k];
    double least = kNever;
    std::uint32_t best = kernel.first;
    for (std::uint32_t c = kernel.first; c < kernel.end; ++c) {
      const Flat::Configuration& one = flat_.configurations[c];
      double cost = (1 - now_.overlap[k] - now_.haste[k]) * one.time + now_.memory[k + 1] * one.scratch +
                    now_.haste[k] * flat_.configurations[kernel.first].time;
      for (std::uint32_t l = kernel.first_link; l < kernel.end_link; ++l) {
        if ((one.mask >> flat_.links[l].group & 1U) != 0) cost += now_.link[l];
      }
      if (cost >= least) continue;
      least = cost;
      best = c;
    }
    now_.configuration[best] = 1;
    now_.kernel[k] = least;
  }
}

double Saddle::doubt(std::uint32_t tensor) const {
  double most = 0;
  for (std::uint32_t e = flat_.tensors[tensor].first; e < flat_.tensors[tensor].end; ++e)
    most = std::max(most, std::min(next_.edge[e], 1 - next_.edge[e]));
  return most;
}

void Saddle::set_units() {
  std::vector<double> worth(flat_.tensors.size()), links(flat_.tensors.size());
  double least = 0;
  for (const Flat::Kernel& kernel : flat_.kernels) least += flat_.configurations[kernel.first].time;
  least *= 1e-3 / static_cast<double>(flat_.kernels.size() + 1);
  std::fill(unit_.link.begin(), unit_.link.end(), 0.0);
  for (std::size_t l = 0; l < flat_.links.size(); ++l) {
    unit_.link[l] = flat_.links[l].worth;
    worth[flat_.links[l].tensor] += flat_.links[l].worth;
    ++links[flat_.links[l].tensor];
  }
  const double memory = 2 * flat_.memory_worth();
  std::fill(unit_.memory.begin(), unit_.memory.end(), memory);
  std::fill(unit_.overlap.begin(), unit_.overlap.end(), 1.0);
  std::fill(unit_.haste.begin(), unit_.haste.end(), 1.0);
  for (std::size_t t = 0; t < flat_.tensors.size(); ++t) {
    const double unit = std::max(least, links[t] > 0 ? worth[t] / links[t] : 0);
    std::fill_n(unit_.node.begin() + first_node_[t], flat_.tensors[t].nodes, unit);
  }
  for (std::size_t k = 0; k < flat_.kernels.size(); ++k) {
    double most = least;
    const Flat::Kernel& kernel = flat_.kernels[k];
    for (std::uint32_t l = kernel.first_link; l < kernel.end_link; ++l)
      most = std::max(most, flat_.links[l].worth);
    unit_.kernel[k] = most;
  }
}

void Saddle::set_steps() {
  for (auto* all : {&step_.edge, &step_.configuration, &step_.memory, &step_.link, &step_.overlap,
                    &step_.haste, &step_.node, &step_.kernel})
    std::fill(all->begin(), all->end(), 0.0);
  std::vector<double> until(flat_.moments + 1);
  for (std::uint32_t m = 0; m < flat_.moments; ++m) until[m + 1] = until[m] + unit_.memory[m];
  for (std::size_t t = 0; t < flat_.tensors.size(); ++t) {
    const Flat::Tensor& tensor = flat_.tensors[t];
    for (std::uint32_t e = tensor.first; e < tensor.end; ++e) {
      const Flat::Edge& edge = flat_.edges[e];
      const std::uint32_t from = first_node_[t] + edge.from, to = first_node_[t] + edge.to;
      step_.edge[e] = tensor.size * (until[edge.end] - until[edge.first]) +
                      (edge.slot < flat_.none() ? unit_.link[edge.slot] : 0) + flat_.hidden[e].share +
                      flat_.hidden[e].slower + unit_.node[from] + unit_.node[to];
      step_.memory[edge.first] += tensor.size;
      step_.memory[edge.end] -= tensor.size;
      step_.link[edge.slot] += 1;
      step_.overlap[edge.beside] += flat_.hidden[e].share;
      step_.haste[edge.beside] += flat_.hidden[e].slower;
      step_.node[from] += 1;
      step_.node[to] += 1;
    }
  }
  double held = 0;
  for (double& sum : step_.memory) sum = held += sum;
  for (std::uint32_t k = 0; k < flat_.kernels.size(); ++k) {
    const Flat::Kernel& kernel = flat_.kernels[k];
    const double fastest = flat_.configurations[kernel.first].time;
    for (std::uint32_t c = kernel.first; c < kernel.end; ++c) {
      const Flat::Configuration& one = flat_.configurations[c];
      double sum = unit_.kernel[k] + unit_.memory[k + 1] * one.scratch;
      if (kernel.overlaps) sum += one.time + one.time - fastest;
      step_.overlap[k] += one.time;
      step_.haste[k] += one.time - fastest;
      step_.kernel[k] += 1;
      step_.memory[k + 1] += one.scratch;
      for (std::uint32_t l = kernel.first_link; l < kernel.end_link; ++l) {
        if ((one.mask >> flat_.links[l].group & 1U) == 0) continue;
        sum += unit_.link[l];
        step_.link[l] += 1;
      }
      step_.configuration[c] = sum;
    }
  }
  const auto invert = [](std::vector<double>& sums) {
    for (double& sum : sums) sum = sum > 0 ? 1 / sum : 0;
  };
  invert(step_.edge);
  invert(step_.configuration);
  const auto scale = [](std::vector<double>& sums, const std::vector<double>& units) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = sums[i] > 1e-12 ? units[i] / sums[i] : 0;
  };
  scale(step_.memory, unit_.memory);
  scale(step_.link, unit_.link);
  scale(step_.overlap, unit_.overlap);
  scale(step_.haste, unit_.haste);
  scale(step_.node, unit_.node);
  scale(step_.kernel, unit_.kernel);
}

bool Saddle::step() {
  ++steps_;
  ++stretch_;
  away_ = static_cast<double>(stretch_) / static_cast<double>(stretch_ + 1);
  if (stretch_ != 1 && stretch_ % kStepsPerLook != 0) {
    advance<false>();
    return false;
  }
  advance<true>();
  show_prices();
  if (is_settled()) {
    restart();
  } else {
    pull_back();
  }
  return true;
}

/// How much the latest step changed decides whether a new stretch begins.
bool Saddle::is_settled() {
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
void Saddle::advance() {
  for (std::uint32_t m = 0; m < flat_.moments; ++m) until_[m + 1] = until_[m] + now_.memory[m];
  for (auto part :
       {&Point::memory, &Point::link, &Point::overlap, &Point::haste, &Point::node, &Point::kernel})
    std::fill((asked_.*part).begin(), (asked_.*part).end(), 0.0);
  move_edges<looks>();
  double held = -flat_.room;
  for (double& asked : asked_.memory) asked = held += asked;
  move_configurations<looks>();
  move_prices<looks>(&Point::memory, 0);
  move_prices<looks>(&Point::link, 0);
  move_prices<looks>(&Point::node, -kNever);
  move_prices<looks>(&Point::kernel, -kNever);
  if (overlaps_) move_overlap<looks>();
}

template <bool looks>
void Saddle::move_edges() {
  const double rate = 1 / weight_;
  for (std::size_t t = 0; t < flat_.tensors.size(); ++t) {
    const Flat::Tensor& tensor = flat_.tensors[t];
    const double* price = now_.node.data() + first_node_[t];
    double* asked = asked_.node.data() + first_node_[t];
    asked[0] += 1;
    for (std::uint32_t e = tensor.first; e < tensor.end; ++e) {
      const Flat::Edge& edge = flat_.edges[e];
      const bool beside = flat_.is_beside(edge);
      double cost = edge.wait + tensor.size * (until_[edge.end] - until_[edge.first]) - now_.link[edge.slot] -
                    price[edge.from] + price[edge.to];
      if (beside)
        cost += flat_.hidden[e].share * now_.overlap[edge.beside] +
                flat_.hidden[e].slower * now_.haste[edge.beside];
      const double before = now_.edge[e];
      const double after = std::max(0.0, before - rate * step_.edge[e] * cost);
      const double ahead = 2 * after - before, held = tensor.size * ahead;
      (looks ? next_.edge[e] : now_.edge[e]) = looks ? after : pulled(before, after, start_.edge[e]);
      asked_.memory[edge.first] += held;
      asked_.memory[edge.end] -= held;
      asked_.link[edge.slot] -= ahead;
      asked[edge.from] -= ahead;
      asked[edge.to] += ahead;
      if (!beside) continue;
      asked_.overlap[edge.beside] += flat_.hidden[e].share * ahead;
      asked_.haste[edge.beside] += flat_.hidden[e].slower * ahead;
    }
    asked[tensor.nodes - 1] = 0;
  }
}

template <bool looks>
void Saddle::move_configurations() {
  const double rate = 1 / weight_;
  for (std::uint32_t k = 0; k < flat_.kernels.size(); ++k) {
    const Flat::Kernel& kernel = flat_.kernels[k];
    std::array<double, 64> price, asked;
    std::fill_n(price.begin(), kernel.groups, 0.0);
    std::fill_n(asked.begin(), kernel.groups, 0.0);
    for (std::uint32_t l = kernel.first_link; l < kernel.end_link; ++l)
      price[flat_.links[l].group] += now_.link[l];
    const double own = 1 - now_.overlap[k] - now_.haste[k];
    const double fastest = flat_.configurations[kernel.first].time;
    const double base = now_.haste[k] * fastest - now_.kernel[k], memory = now_.memory[k + 1];
    double sum = 0, scratch = 0, time = 0;
    for (std::uint32_t c = kernel.first; c < kernel.end; ++c) {
      const Flat::Configuration& one = flat_.configurations[c];
      double cost = base + own * one.time + memory * one.scratch;
      for (std::uint64_t left = one.mask; left != 0; left &= left - 1)
        cost += price[static_cast<std::size_t>(std::countr_zero(left))];
      const double before = now_.configuration[c];
      const double after = std::max(0.0, before - rate * step_.configuration[c] * cost);
      const double ahead = 2 * after - before;
      (looks ? next_.configuration[c] : now_.configuration[c]) =
          looks ? after : pulled(before, after, start_.configuration[c]);
      sum += ahead;
      scratch += ahead * one.scratch;
      time += ahead * one.time;
      for (std::uint64_t left = one.mask; left != 0; left &= left - 1)
        asked[static_cast<std::size_t>(std::countr_zero(left))] += ahead;
    }
    asked_.kernel[k] = 1 - sum;
    asked_.memory[k + 1] += scratch;
    asked_.overlap[k] -= time;
    asked_.haste[k] -= time - sum * fastest;
    for (std::uint32_t l = kernel.first_link; l < kernel.end_link; ++l)
      asked_.link[l] += asked[flat_.links[l].group];
  }
}

template <bool looks>
void Saddle::move_prices(std::vector<double> Point::*prices, double least) {
  std::vector<double>&now = now_.*prices, &next = next_.*prices;
  const std::vector<double>&asked = asked_.*prices, &step = step_.*prices, &start = start_.*prices;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const double after = std::max(least, now[i] + weight_ * step[i] * asked[i]);
    (looks ? next[i] : now[i]) = looks ? after : pulled(now[i], after, start[i]);
  }
}

template <bool looks>
void Saddle::move_overlap() {
  for (std::size_t k = 0; k < flat_.kernels.size(); ++k) {
    if (!flat_.kernels[k].overlaps) continue;
    double overlap = now_.overlap[k] + weight_ * step_.overlap[k] * asked_.overlap[k];
    double haste = now_.haste[k] + weight_ * step_.haste[k] * asked_.haste[k];
    share_overlap(overlap, haste);
    (looks ? next_.overlap[k] : now_.overlap[k]) =
        looks ? overlap : pulled(now_.overlap[k], overlap, start_.overlap[k]);
    (looks ? next_.haste[k] : now_.haste[k]) = looks ? haste : pulled(now_.haste[k], haste, start_.haste[k]);
  }
}

void Saddle::show_prices() {
  prices_.memory.assign(next_.memory.begin(), next_.memory.begin() + flat_.moments);
  prices_.link = next_.link;
  prices_.overlap = next_.overlap;
  prices_.haste = next_.haste;
}

Saddle::Lengths Saddle::distance(const Point& a, const Point& b) const {
  Lengths found;
  const auto add = [&](double& sum, std::vector<double> Point::*part) {
    const std::vector<double>&one = a.*part, &other = b.*part, &step = step_.*part;
    for (std::size_t i = 0; i < one.size(); ++i) {
      const double difference = one[i] - other[i];
      if (step[i] > 0) sum += difference * difference / step[i];
    }
  };
  add(found.primal, &Point::edge);
  add(found.primal, &Point::configuration);
  for (auto part :
       {&Point::memory, &Point::link, &Point::overlap, &Point::haste, &Point::node, &Point::kernel})
    add(found.dual, part);
  return found;
}

void Saddle::pull_back() {
  for (auto part : {&Point::edge, &Point::configuration, &Point::memory, &Point::link, &Point::overlap,
                    &Point::haste, &Point::node, &Point::kernel}) {
    std::vector<double>& now = now_.*part;
    for (std::size_t i = 0; i < now.size(); ++i) now[i] = pulled(now[i], (next_.*part)[i], (start_.*part)[i]);
  }
}

void Saddle::restart() {
  const Lengths moved = distance(next_, start_);
  if (moved.primal > 0 && moved.dual > 0) {
    const double balanced = std::sqrt(moved.dual / moved.primal);
    weight_ = std::sqrt(weight_ * std::clamp(balanced, weight_ * 1e-2, weight_ * 1e2));
  }
  now_ = start_ = next_;
  stretch_ = 0;
}

}  // namespace terrace::autotm

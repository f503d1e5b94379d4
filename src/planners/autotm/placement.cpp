#include "planners/autotm/placement.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace terrace::autotm {
namespace {

/// So that nobody stays in fast memory for nothing.
constexpr double kLeastFee = 1e-6;
constexpr std::size_t kNeighbours = 4096;
constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

Placement::Placement(const Flat& flat)
    : flat_(flat),
      loads_(flat.moments),
      paths_(flat.tensors.size()),
      fast_(flat.links.size()),
      configuration_(flat.kernels.size(), kNone),
      scratch_(flat.kernels.size()),
      beside_(flat.kernels.size() + 1),
      fee_(flat.memory_worth()),
      until_(flat.moments + 1),
      worth_(2 * flat.links.size() + 1),
      least_(flat.most_nodes),
      by_(flat.most_nodes) {
  const auto moments = [](const Flat::Edge& edge) { return static_cast<double>(edge.end - edge.first); };
  for (std::uint32_t t = 0; t < flat.tensors.size(); ++t) {
    const Flat::Tensor& tensor = flat.tensors[t];
    if (!find(tensor, [&](const Flat::Edge& edge, double) { return moments(edge); })) {
      is_complete_ = false;
      return;
    }
    add(t, path_);
  }
  for (std::uint32_t k = 0; k < flat.kernels.size(); ++k) is_complete_ = set_configuration(k) && is_complete_;
}

template <class Cost>
bool Placement::find(const Flat::Tensor& tensor, Cost cost) {
  std::fill_n(least_.begin(), tensor.nodes, kNever);
  least_[0] = 0;
  for (std::uint32_t e = tensor.first; e < tensor.end; ++e) {
    const Flat::Edge& edge = flat_.edges[e];
    if (least_[edge.from] == kNever) continue;
    const double until = least_[edge.from] + cost(edge, least_[edge.to] - least_[edge.from]);
    if (until >= least_[edge.to]) continue;
    least_[edge.to] = until;
    by_[edge.to] = e;
  }
  if (least_[tensor.nodes - 1] == kNever) return false;
  path_.clear();
  for (std::uint32_t node = tensor.nodes - 1; node != 0; node = flat_.edges[path_.back()].from)
    path_.push_back(by_[node]);
  std::reverse(path_.begin(), path_.end());
  return true;
}

bool Placement::is_overfull() const { return loads_.most(0, flat_.moments) > flat_.capacity; }

bool Placement::can_avoid(const Flat::Tensor& tensor, std::uint32_t moment) {
  return find(tensor, [&](const Flat::Edge& edge, double) {
    return edge.first <= moment && moment < edge.end ? kNever : 0.0;
  });
}

Shortage Placement::shortage() {
  Shortage worst;
  for (std::uint32_t m = 0; m < flat_.moments; ++m) {
    const std::int64_t bytes = loads_.most(m, m + 1) + least_scratch(m);
    if (bytes > worst.bytes) worst = {m, bytes};
  }
  worst.bytes = least_scratch(worst.moment);
  for (const Flat::Tensor& tensor : flat_.tensors)
    worst.bytes += can_avoid(tensor, worst.moment) ? 0 : tensor.bytes;
  return worst;
}

std::int64_t Placement::least_scratch(std::uint32_t moment) const {
  if (moment == 0 || moment > flat_.kernels.size()) return 0;
  const Flat::Kernel& kernel = flat_.kernels[moment - 1];
  std::int64_t least = kernel.first < kernel.end ? flat_.configurations[kernel.first].bytes : 0;
  for (std::uint32_t c = kernel.first; c < kernel.end; ++c)
    least = std::min(least, flat_.configurations[c].bytes);
  return least;
}

void Placement::set_prices(const Prices& prices) {
  prices_ = &prices;
  for (std::uint32_t m = 0; m < flat_.moments; ++m) until_[m + 1] = until_[m] + prices.memory[m];
}

void Placement::sweep(Trust trust, SplitMix& random) {
  set_trust(trust);
  shuffle(random);
  for (const std::uint32_t tensor : order_) choose(tensor);
  for (std::uint32_t k = 0; k < flat_.kernels.size(); ++k) {
    if (!flat_.kernels[k].has_scratch) continue;
    hold_scratch(k, 0);
    set_configuration(k);
  }
}

/// Only among neighbours, which share kernels: anything further would find nothing of a large problem in a
/// cache.
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
    return its < limit && fits(tensor, edge) ? its : kNever;
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

bool Placement::has_room(std::uint32_t t) const {
  for (const std::uint32_t e : paths_[t]) {
    const Flat::Edge& edge = flat_.edges[e];
    if (loads_.most(edge.first, edge.end) > flat_.capacity) return false;
    if (edge.slot == flat_.none()) continue;
    const std::uint32_t k = flat_.links[link(edge)].kernel;
    if (flat_.kernels[k].has_scratch && loads_.most(k + 1, k + 2) > flat_.capacity) return false;
  }
  return true;
}

void Placement::remove(std::uint32_t t) {
  const Flat::Tensor& tensor = flat_.tensors[t];
  for (const std::uint32_t e : paths_[t]) {
    const Flat::Edge& edge = flat_.edges[e];
    loads_.add(edge.first, edge.end, -tensor.bytes);
    move_beside(edge.beside, -flat_.time(edge));
    if (edge.slot != flat_.none()) hold_scratch(flat_.links[link(edge)].kernel, 0);
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

/// No kernel is beside moves that all wait for.
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
    hold_scratch(k, 0);
    all = set_configuration(k) && all;
  }
  return all;
}

std::uint32_t Placement::link(const Flat::Edge& edge) const {
  return edge.slot < flat_.none() ? edge.slot : edge.slot - flat_.none() - 1;
}

void Placement::value_links(const Flat::Tensor& tensor, const Path& path) {
  for (const std::uint32_t e : path) {
    if (flat_.edges[e].slot == flat_.none()) continue;
    const std::uint32_t l = link(flat_.edges[e]), k = flat_.links[l].kernel;
    const std::int64_t left = room(k);
    const std::uint64_t others = slow_groups(k, l), own = std::uint64_t{1} << flat_.links[l].group;
    const auto value = [&](bool fast) {
      const std::uint32_t c = configure(k, fast ? others : others | own, fast ? left - tensor.bytes : left);
      if (c == kNone) return kNever;
      return (1 - trust_.link) * cost(k, c) -
             (fast ? trust_.link * (prices_->link[l] + trust_.hope * flat_.links[l].worth) : 0);
    };
    worth_[l] = value(true);
    worth_[flat_.none() + 1 + l] = value(false);
  }
}

double Placement::memory_cost(const Flat::Tensor& tensor, const Flat::Edge& edge) const {
  const double moments = edge.end - edge.first;
  return tensor.size * (trust_.memory * (until_[edge.end] - until_[edge.first]) +
                        (kLeastFee + trust_.fee) * fee_ * moments);
}

double Placement::move_cost(const Flat::Edge& edge) const {
  if (!flat_.is_beside(edge)) return edge.wait;
  const double kernel = flat_.configurations[configuration_[edge.beside]].time;
  const double longer = std::max(kernel, beside_[edge.beside] + flat_.time(edge)) - kernel_time(edge.beside);
  return (1 - trust_.link) * longer +
         trust_.link * (edge.wait + prices_->overlap[edge.beside] * flat_.hidden_of(edge).share +
                        prices_->haste[edge.beside] * flat_.hidden_of(edge).slower);
}

bool Placement::fits(const Flat::Tensor& tensor, const Flat::Edge& edge) const {
  return edge.first >= edge.end || loads_.most(edge.first, edge.end) + tensor.bytes <= flat_.capacity;
}

std::int64_t Placement::room(std::uint32_t k) const {
  return flat_.kernels[k].has_scratch ? flat_.capacity - loads_.most(k + 1, k + 2)
                                      : std::numeric_limits<std::int64_t>::max();
}

std::uint64_t Placement::slow_groups(std::uint32_t k, std::uint32_t but) const {
  std::uint64_t slow = 0;
  for (std::uint32_t l = flat_.kernels[k].first_link; l < flat_.kernels[k].end_link; ++l) {
    if (fast_[l] == 0 && l != but) slow |= std::uint64_t{1} << flat_.links[l].group;
  }
  return slow;
}

double Placement::cost(std::uint32_t k, std::uint32_t c) const {
  const Flat::Configuration& one = flat_.configurations[c];
  const double memory = prices_ == nullptr ? 0 : trust_.memory * prices_->memory[k + 1] * one.scratch;
  return std::max(one.time, beside_[k]) + memory;
}

std::uint32_t Placement::configure(std::uint32_t k, std::uint64_t slow, std::int64_t left) const {
  double least = kNever;
  std::uint32_t best = kNone;
  for (std::uint32_t c = flat_.kernels[k].first; c < flat_.kernels[k].end; ++c) {
    const Flat::Configuration& one = flat_.configurations[c];
    if (one.time >= least) break;  // they ascend
    if ((one.mask & slow) != 0 || (one.bytes > 0 && one.bytes > left)) continue;
    if (const double its = cost(k, c); its < least) {
      least = its;
      best = c;
    }
  }
  return best;
}

void Placement::hold_scratch(std::uint32_t k, std::int64_t bytes) {
  if (!flat_.kernels[k].has_scratch) return;
  loads_.add(k + 1, k + 2, bytes - scratch_[k]);
  scratch_[k] = bytes;
}

/// pre: it holds no scratch
bool Placement::set_configuration(std::uint32_t k) {
  time_ -= kernel_time(k);
  configuration_[k] = configure(k, slow_groups(k), room(k));
  time_ += kernel_time(k);
  if (configuration_[k] == kNone) return false;
  hold_scratch(k, flat_.configurations[configuration_[k]].bytes);
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

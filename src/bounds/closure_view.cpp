// SPDX-License-Identifier: Apache-2.0
#include "bounds/closure_view.hpp"

#include <algorithm>
#include <limits>

#include "graph/variant.hpp"
#include "plan/step_uses.hpp"

namespace terrace::bounds {
namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();
/// What is less than this share of a step is no flow.
constexpr double kLeastFlow = 1e-12;
/// More than sums may be wrong.
constexpr double kSlack = 1e-11;
/// Weights are tried from one downwards, each half of the one before, until all that is at hand costs no more
/// than this share of the step: recomputing is much cheaper than links.
constexpr double kCheap = 0.01;
constexpr int kMostHalves = 40;
/// How often the range around the best of them is halved.
constexpr int kFiner = 5;
/// How many edges all flows of a step may look at: some tenths of a second.
constexpr std::uint64_t kMostWork = 20'000'000;

/// A link's second that counts for so much leaves this much of the kernels beside it: all, up to what they
/// lose by it anyway.
double kernels_weight(const Carriage& link, double weight) {
  return weight <= link.loss ? 1 : 1 - (weight - link.loss) / (1 - link.loss);
}

}  // namespace

/// Flows by shortest augmenting paths (Dinic).
class ClosureViews::Network {
 public:
  explicit Network(std::size_t nodes) : edges_of_(nodes), level_(nodes), next_(nodes) {}

  void add(std::uint32_t from, std::uint32_t to, double room) {
    edges_of_[from].push_back(static_cast<std::uint32_t>(edges_.size()));
    edges_.push_back({to, room});
    edges_of_[to].push_back(static_cast<std::uint32_t>(edges_.size()));
    edges_.push_back({from, 0});
  }

  /// Takes what it looks at from `work`, and ends with what flows so far where nothing of that is left.
  double flow(std::uint32_t source, std::uint32_t sink, double least, std::uint64_t& work) {
    double sum = 0;
    while (work > 0 && find_levels(source, sink, least)) {
      work -= std::min<std::uint64_t>(work, edges_.size());
      std::fill(next_.begin(), next_.end(), 0U);
      for (double more = 1; more > 0 && work > 0;) {
        std::uint64_t looked_at = 0;
        more = push(source, sink, least, looked_at);
        work -= std::min(work, looked_at);
        sum += more;
      }
    }
    return sum;
  }

 private:
  struct Edge {
    std::uint32_t to;
    double room;
  };

  bool find_levels(std::uint32_t source, std::uint32_t sink, double least) {
    std::fill(level_.begin(), level_.end(), kNever);
    std::vector<std::uint32_t> reached{source};
    level_[source] = 0;
    for (std::size_t i = 0; i < reached.size() && level_[sink] == kNever; ++i) {
      for (const std::uint32_t e : edges_of_[reached[i]]) {
        if (edges_[e].room <= least || level_[edges_[e].to] != kNever) continue;
        level_[edges_[e].to] = level_[reached[i]] + 1;
        reached.push_back(edges_[e].to);
      }
    }
    return level_[sink] != kNever;
  }

  /// Pushes along one path through the levels. Returns how much; nothing where there is no path any more.
  double push(std::uint32_t source, std::uint32_t sink, double least, std::uint64_t& looked_at) {
    std::vector<std::uint32_t> path;  // edges
    for (std::uint32_t at = source; at != sink; ++looked_at) {
      if (next_[at] < edges_of_[at].size()) {
        const std::uint32_t e = edges_of_[at][next_[at]];
        if (edges_[e].room > least && level_[edges_[e].to] == level_[at] + 1) {
          path.push_back(e);
          at = edges_[e].to;
        } else {
          ++next_[at];
        }
        continue;
      }
      if (path.empty()) return 0;
      at = edges_[path.back() ^ 1U].to;
      path.pop_back();
      ++next_[at];
    }
    double most = kEndless;
    for (const std::uint32_t e : path) most = std::min(most, edges_[e].room);
    for (const std::uint32_t e : path) edges_[e].room -= most, edges_[e ^ 1U].room += most;
    return most;
  }

  std::vector<Edge> edges_;  ///< each before its opposite
  std::vector<std::vector<std::uint32_t>> edges_of_;
  std::vector<std::uint32_t> level_, next_;  ///< by node; `next_`: of its edges
};

ClosureViews::ClosureViews(const PlanRequest& request, const KernelClock& clock, Carriage out, Carriage in)
    : request_(request), out_(out), in_(in), work_(kMostWork), latest_(request.graph.tensors.size(), kNever) {
  const Graph& graph = request.graph;
  const auto kernels = static_cast<std::uint32_t>(graph.kernels.size());
  begin_.push_back(0);
  for (std::uint32_t k = 0; k < kernels; ++k) {
    seconds_.push_back(clock.fast({k}).count());
    begin_.push_back(begin_.back() + seconds_.back());
    auto& inputs = inputs_.emplace_back();
    for (const Operand& input : graph.kernels[k].inputs) {
      inputs.push_back(value_of(input.tensor));
      values_[inputs.back()].last_read = k;
    }
    for (const Operand& output : graph.kernels[k].outputs) {
      latest_[output.tensor.index] = static_cast<std::uint32_t>(values_.size());
      values_.push_back({output.tensor, k, kNever, false});
    }
  }
  for (const TensorId result : graph.results) values_[value_of(result)].last_read = kernels;
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    if (graph.tensors[i].persistent && latest_[i] != kNever) values_[latest_[i]].kept = true;
  }
}

std::uint32_t ClosureViews::value_of(TensorId tensor) {
  std::uint32_t& latest = latest_[tensor.index];
  if (latest == kNever) {
    latest = static_cast<std::uint32_t>(values_.size());
    values_.push_back({tensor, kNever, kNever, false});
  }
  return latest;
}

double ClosureViews::bytes(const Value& value) const {
  return static_cast<double>(request_.graph[value.tensor].bytes.count);
}

/// Finds what is needed after the kernel and what recomputing that could need.
void ClosureViews::select(std::uint32_t p) {
  const Graph& graph = request_.graph;
  const Kernel& kernel = graph.kernels[p];
  is_operand_.assign(graph.tensors.size(), false);
  room_ = static_cast<double>(request_.budget[0].count);
  const auto hold = [&](TensorId tensor) {
    if (!is_needed(kernel, tensor) || is_operand_[tensor.index]) return;
    is_operand_[tensor.index] = true;
    room_ -= static_cast<double>(graph[tensor].bytes.count);
  };
  for (const Operand& input : kernel.inputs) hold(input.tensor);
  for (const Operand& output : kernel.outputs) hold(output.tensor);
  if (kernel.workspace) hold(kernel.workspace);

  always_out_ = always_in_ = 0;
  chosen_.clear();
  std::vector<bool> seen(values_.size());
  const auto choose = [&](std::uint32_t v) {
    if (seen[v] || values_[v].made == kNever || is_operand_[values_[v].tensor.index]) return;
    seen[v] = true;
    chosen_.push_back(v);
  };
  for (std::uint32_t v = 0; v < values_.size(); ++v) {
    const Value& value = values_[v];
    const bool is_read = value.last_read != kNever && value.last_read > p;
    if (is_operand_[value.tensor.index] || (value.made != kNever && value.made >= p)) continue;
    if (!is_read && !value.kept) continue;
    if (value.made != kNever) {
      choose(v);
    } else if (is_read) {
      always_in_ += bytes(value);
      if (is_given(graph[value.tensor])) always_out_ += bytes(value);
    }
  }
  for (std::size_t i = 0; i < chosen_.size(); ++i) {  // more come meanwhile
    for (const std::uint32_t input : inputs_[values_[chosen_[i]].made]) choose(input);
  }
}

double ClosureViews::with(std::uint32_t p, Weights weights) {
  const double out = weights.out * out_.busy, in = weights.in * in_.busy;
  const double kernels = kernels_weight(in_, weights.in);
  const double all = begin_.back(), after = all - begin_[p + 1];
  const double fixed = kernels_weight(out_, weights.out) * begin_[p] + seconds_[p] + kernels * after +
                       (always_out_ - room_) * out + (always_in_ - room_) * in;

  std::vector<std::uint32_t> node_of_kernel(p, kNever), node_of_value(values_.size(), kNever);
  std::uint32_t nodes = 2;  // the source and the sink
  for (const std::uint32_t v : chosen_) {
    node_of_value[v] = nodes++;
    std::uint32_t& made = node_of_kernel[values_[v].made];
    if (made == kNever) made = nodes++;
  }
  Network network(nodes);
  for (std::uint32_t k = 0; k < p; ++k) {
    if (node_of_kernel[k] == kNever) continue;
    network.add(node_of_kernel[k], 1, kernels * seconds_[k]);
    for (const std::uint32_t input : inputs_[k]) {
      if (node_of_value[input] != kNever) network.add(node_of_kernel[k], node_of_value[input], kEndless);
    }
  }
  for (const std::uint32_t v : chosen_) {
    const Value& value = values_[v];
    const bool is_read = value.last_read != kNever && value.last_read > p;
    if (is_read || value.kept) network.add(0, node_of_value[v], kEndless);
    const double price = bytes(value) * (out + (value.kept && !is_read ? 0 : in));
    network.add(node_of_value[v], node_of_kernel[value.made], price);
  }
  return fixed + network.flow(0, 1, kLeastFlow * all, work_) - kSlack * (all + room_ * (out + in));
}

/// The bound is concave in each weight: looks for the best one from one downwards, then around it.
void ClosureViews::climb(std::uint32_t p, double Weights::*which, Weights& weights, double& best) {
  const auto offer = [&](double weight) {
    if (weight <= 0 || weight > 1 || work_ == 0) return;
    Weights other = weights;
    other.*which = weight;
    const double found = with(p, other);
    if (found > best) best = found, weights = other;
  };
  double all = 0;
  for (const std::uint32_t v : chosen_) all += bytes(values_[v]);
  const double dearest = all * std::max(out_.busy, in_.busy), cheap = kCheap * begin_.back();
  double weight = 1;
  for (int i = 0; i < kMostHalves && weight * dearest > cheap; ++i, weight /= 2) offer(weight);
  double step = weights.*which / 4;
  for (int i = 0; i < kFiner; ++i, step /= 2) {
    const double middle = weights.*which;
    offer(middle - step);
    offer(middle + step);
  }
}

double ClosureViews::least(std::uint32_t kernel) {
  select(kernel);
  Weights weights;
  double best = with(kernel, weights);
  climb(kernel, &Weights::out, weights, best);
  climb(kernel, &Weights::in, weights, best);
  return best;
}

}  // namespace terrace::bounds

// Very small placement problems made up from nothing, and their optimum by trying everything.
//
// They obey instance.hpp and no more: odd occupancies, moves of any time beside any kernel, configurations of
// any mixture of operands, scratch, tensors that must be fast or slow, capacities from nothing to plenty.
// With three tiers there is a pool between, and some tensors take memory on two edges, one after the other.
#pragma once

#include <algorithm>
#include <limits>

#include "base/random.hpp"
#include "planners/autotm/model/instance.hpp"

namespace terrace::autotm {

class RandomInstance {
 public:
  explicit RandomInstance(std::uint64_t seed, std::uint32_t tiers = 2) : random_(seed), tiers_(tiers) {}

  Instance make() {
    Instance made;
    made.formulation = Formulation::asynchronous;
    made.slow = TierId{tiers_ - 1};
    made.kernels.resize(1 + random_.below(4));
    const std::uint64_t tensors = 1 + random_.below(4);
    for (std::uint32_t t = 0; t < tensors; ++t) made.tensors.push_back(tensor(made, t));
    std::uint64_t total = 0;
    for (const FlowGraph& graph : made.tensors) total += graph.size.count;
    made.capacity = Bytes{random_.below(total + total / 4 + 2)};
    if (tiers_ == 3) made.between = {{TierId{1}, Bytes{random_.below(total + total / 4 + 2)}}};
    for (KernelChoice& kernel : made.kernels) configure(made, kernel);
    return made;
  }

 private:
  bool chance(std::uint64_t percent) { return random_.below(100) < percent; }
  Seconds time() { return Seconds{static_cast<double>(1 + random_.below(1000)) * 1e-3}; }

  FlowGraph tensor(Instance& instance, std::uint32_t place) {
    FlowGraph graph;
    graph.tensor = {place};
    graph.size = Bytes{chance(5) ? 0 : 1 + random_.below(1000)};
    for (std::uint32_t m = 0; m < instance.moments(); ++m) {
      if (chance(50)) graph.uses.push_back({m, true, false});
    }
    if (graph.uses.empty()) graph.uses.push_back({1, false, true});
    for (std::uint32_t use = 0; use < graph.uses.size(); ++use) {
      const std::uint32_t moment = graph.uses[use].moment;
      if (moment > 0 && moment + 1 < instance.moments())
        instance.kernels[moment - 1].operands.push_back({place, use});
    }
    layers(instance, graph);
    return graph;
  }

  /// One to three nodes for each use, and edges between all neighbours.
  void layers(const Instance& instance, FlowGraph& graph) {
    std::vector<Node> before{{0, TierId{0}}}, now;
    for (std::uint32_t use = 0; use < graph.uses.size(); ++use) {
      if (tiers_ == 3 && use == 0) detour(instance, graph, before);
      now.clear();
      if (!chance(10)) now.push_back({graph.nodes++, TierId{tiers_ - 1}});
      if (tiers_ == 3 && chance(70)) now.push_back({graph.nodes++, TierId{1}});
      if (now.empty() || !chance(10)) now.push_back({graph.nodes++, TierId{0}});
      for (const Node& from : before) {
        for (const Node& to : now) {
          connect(instance, graph, use, from, to);
          if (chance(20)) connect(instance, graph, use, from, to);
        }
      }
      before = now;
    }
    std::stable_sort(graph.edges.begin(), graph.edges.end(),
                     [](const Edge& a, const Edge& b) { return a.from < b.from; });
  }

  struct Node {
    std::uint32_t index;
    TierId tier;
  };

  /// Some begin with memory of a pool at moments before the first use or after the last.
  void detour(const Instance& instance, FlowGraph& graph, std::vector<Node>& nodes) {
    const std::uint32_t before = graph.uses.front().moment, after = graph.uses.back().moment + 1;
    const bool early = chance(50);
    Edge edge;
    edge.first = early ? 0 : after;
    edge.last = early ? before - 1 : instance.moments() - 1;
    if (!chance(40) || (early ? before == 0 : after == instance.moments())) return;
    edge.to = graph.nodes++;
    edge.pool = TierId{chance(50) ? 0U : 1U};
    graph.edges.push_back(edge);
    if (chance(50)) nodes.clear();
    nodes.push_back({edge.to, TierId{0}});
  }

  void connect(const Instance& instance, FlowGraph& graph, std::uint32_t use, const Node& from,
               const Node& to) {
    Edge edge;
    edge.from = from.index;
    edge.to = to.index;
    edge.use = use;
    edge.tier = to.tier;
    const std::uint32_t moment = graph.uses[use].moment;
    const std::uint32_t earlier = use == 0 ? moment : graph.uses[use - 1].moment + 1;
    if (to.tier != instance.slow) {
      edge.pool = to.tier;
      edge.first = from.tier == to.tier ? earlier : moment;
      edge.last = moment;
    }
    if (use > 0 && (from.tier != to.tier || chance(20))) {
      edge.move = from.tier == TierId{0} ? Move::out : Move::in;
      edge.moment = earlier + static_cast<std::uint32_t>(random_.below(moment - earlier + 1));
      edge.time = time();
      edge.beside = edge.moment > 0 && edge.moment + 1 < instance.moments() && chance(60);
    }
    graph.edges.push_back(edge);
  }

  /// First the one that every placement satisfies.
  void configure(const Instance& instance, KernelChoice& kernel) {
    Configuration least;
    std::vector<TierId> tiers;
    least.time = time() + time();
    for (const KernelOperand& operand : kernel.operands) {
      TierId slowest;
      for (const Edge& edge : instance.tensors[operand.tensor].edges) {
        if (edge.use == operand.use) slowest = std::max(slowest, edge.tier);
      }
      tiers.push_back(slowest > TierId{0} ? slowest : TierId{chance(50) ? 1U : 0U});
    }
    if (chance(10)) least.scratch = Bytes{random_.below(instance.capacity.count / 2 + 1)};
    kernel.add(least, tiers);
    for (std::uint64_t more = random_.below(4); more > 0; --more) {
      Configuration one = least;
      one.variant = static_cast<std::uint32_t>(more);
      one.time = least.time * (static_cast<double>(random_.below(100)) / 100);
      for (TierId& tier : tiers) tier = TierId{chance(50) ? 0U : tiers_ == 2 || chance(50) ? 1U : 2U};
      if (tiers_ == 3 && chance(30)) one.workspace = TierId{1};
      if (chance(30)) one.scratch = Bytes{random_.below(instance.capacity.count + 1)};
      kernel.add(one, tiers);
    }
  }

  SplitMix random_;
  std::uint32_t tiers_;
};

/// Tries all paths of all tensors, and for each the best configuration of every kernel.
class BruteForce {
 public:
  explicit BruteForce(const Instance& instance)
      : instance_(instance),
        pools_(instance.pools()),
        held_(pools_.size(), std::vector<std::int64_t>(instance.moments())),
        beside_(instance.moments()) {
    for (const FlowGraph& graph : instance.tensors) {
      list(graph, 0, {});
      all_paths_.push_back(std::move(paths_));
      paths_.clear();
      tiers_.emplace_back(graph.uses.size());
    }
  }

  /// How many there are.
  double combinations() const {
    double all = 1;
    for (const auto& paths : all_paths_) all *= static_cast<double>(paths.size());
    return all;
  }

  /// Infinite where nothing fits.
  double best() {
    best_ = std::numeric_limits<double>::infinity();
    choose(0, 0);
    return best_;
  }

 private:
  using Path = std::vector<std::uint32_t>;

  void list(const FlowGraph& graph, std::uint32_t node, Path path) {
    bool left = false;
    for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
      if (graph.edges[e].from != node) continue;
      left = true;
      path.push_back(e);
      list(graph, graph.edges[e].to, path);
      path.pop_back();
    }
    if (!left) paths_.push_back(path);
  }

  void choose(std::size_t t, double waiting) {
    if (t == instance_.tensors.size()) return finish(waiting);
    for (const Path& path : all_paths_[t]) choose(t + 1, waiting + set(t, path, 1)), set(t, path, -1);
  }

  double set(std::size_t t, const Path& path, int sign) {
    const FlowGraph& graph = instance_.tensors[t];
    double waiting = 0;
    for (const std::uint32_t e : path) {
      const Edge& edge = graph.edges[e];
      for (std::size_t p = 0; p < pools_.size(); ++p) {
        for (std::uint32_t m = 0; m < instance_.moments(); ++m) {
          if (edge.occupies(pools_[p].tier, m))
            held_[p][m] += sign * static_cast<std::int64_t>(graph.size.count);
        }
      }
      (edge.beside ? beside_[edge.moment] : waiting) += sign * edge.time.count();
    }
    tiers_[t] = places(graph, path);
    return waiting;
  }

  void finish(double total) {
    for (std::size_t p = 0; p < pools_.size(); ++p) {
      if (*std::max_element(held_[p].begin(), held_[p].end()) > capacity(p)) return;
    }
    for (std::uint32_t k = 0; k < instance_.kernels.size(); ++k) {
      double least = std::numeric_limits<double>::infinity();
      const KernelChoice& kernel = instance_.kernels[k];
      for (std::size_t c = 0; c < kernel.configurations.size(); ++c) {
        const Configuration& one = kernel.configurations[c];
        if (satisfies(kernel, c) && has_room(k + 1, one))
          least = std::min(least, std::max(one.time.count(), beside_[k + 1]));
      }
      total += least;
    }
    best_ = std::min(best_, total);
  }

  std::int64_t capacity(std::size_t pool) const {
    return static_cast<std::int64_t>(pools_[pool].capacity.count);
  }

  bool has_room(std::uint32_t moment, const Configuration& one) const {
    for (std::size_t p = 0; p < pools_.size(); ++p) {
      const auto scratch = static_cast<std::int64_t>(one.scratch.count);
      if (one.workspace == pools_[p].tier && held_[p][moment] + scratch > capacity(p)) return false;
    }
    return true;
  }

  bool satisfies(const KernelChoice& kernel, std::size_t configuration) const {
    for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
      if (tiers_[kernel.operands[i].tensor][kernel.operands[i].use] > kernel.tier(configuration, i))
        return false;
    }
    return true;
  }

  const Instance& instance_;
  std::vector<Path> paths_;
  std::vector<std::vector<Path>> all_paths_;
  std::vector<Pool> pools_;
  std::vector<std::vector<std::int64_t>> held_;  ///< by pool and moment
  std::vector<double> beside_;
  std::vector<std::vector<TierId>> tiers_;
  double best_ = 0;
};

}  // namespace terrace::autotm

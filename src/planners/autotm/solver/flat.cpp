// SPDX-License-Identifier: Apache-2.0
#include "planners/autotm/solver/flat.hpp"

#include <algorithm>
#include <array>

#include "base/check.hpp"

namespace terrace::autotm {
namespace {

constexpr std::size_t kMostGroups = 64;

class Flattening {
 public:
  explicit Flattening(const Instance& instance) : instance_(instance), pools_(instance.pools()) {
    flat_.moments = instance.moments();
    flat_.unit = std::max(1.0, static_cast<double>(instance.capacity.count));
    for (const Pool& pool : pools_) {
      flat_.capacity.push_back(static_cast<std::int64_t>(pool.capacity.count));
      flat_.room.insert(flat_.room.end(), flat_.moments,
                        static_cast<double>(pool.capacity.count) / flat_.unit);
    }
    std::size_t uses = 0, edges = 0, configurations = 0;
    for (const FlowGraph& graph : instance.tensors) {
      first_use_.push_back(uses);
      uses += graph.uses.size();
      edges += graph.edges.size() + 2;  // those that end paths
    }
    for (const KernelChoice& kernel : instance.kernels) configurations += kernel.configurations.size();
    flat_.edges.reserve(edges);
    flat_.hidden.reserve(edges);
    flat_.original.reserve(edges);
    flat_.tensors.reserve(instance.tensors.size());
    flat_.kernels.reserve(instance.kernels.size());
    flat_.configurations.reserve(configurations);
    places_.resize(uses);
    links_.resize(uses);
    for (std::size_t t = 0; t < instance.tensors.size(); ++t) add_places(t);
  }

  Flat run() {
    for (const KernelChoice& kernel : instance_.kernels) add_kernel(kernel);
    for (const FlowGraph& graph : instance_.tensors) add_tensor(graph);
    return std::move(flat_);
  }

 private:
  /// A small set of tiers, in ascending order.
  class Tiers {
   public:
    void add(TierId tier) {
      const auto at = std::lower_bound(tiers_.begin(), tiers_.begin() + size_, tier);
      if (at != tiers_.begin() + size_ && *at == tier) return;
      check(size_ < kMostTiers, "an instance has up to three tiers");
      std::copy_backward(at, tiers_.begin() + size_, tiers_.begin() + size_ + 1);
      *at = tier;
      ++size_;
    }
    std::uint32_t size() const { return size_; }
    TierId operator[](std::uint32_t i) const { return tiers_[i]; }

   private:
    std::array<TierId, kMostTiers> tiers_;
    std::uint32_t size_ = 0;
  };
  /// The links of one operand.
  struct Links {
    std::uint32_t first = kNone;
    Tiers tiers;  ///< by link: it is kept in this tier or a faster one
  };

  void add_places(std::size_t tensor) {
    for (const Edge& edge : instance_.tensors[tensor].edges) {
      if (edge.use != kNone) places_[first_use_[tensor] + edge.use].add(edge.tier);
    }
  }
  const Tiers& places(const KernelOperand& operand) const {
    return places_[first_use_[operand.tensor] + operand.use];
  }

  std::uint32_t row(TierId tier, std::uint32_t moment) const {
    std::uint32_t pool = 0;
    while (pools_[pool].tier != tier) ++pool;
    return pool * flat_.moments + moment;
  }

  void add_kernel(const KernelChoice& kernel) {
    Flat::Kernel made{};
    made.first_link = flat_.none();
    made.first = static_cast<std::uint32_t>(flat_.configurations.size());
    for (std::uint32_t c = 0; c < kernel.configurations.size(); ++c) {
      const Configuration& one = kernel.configurations[c];
      if (!is_possible(kernel, c)) continue;
      const auto bytes = static_cast<std::int64_t>(one.scratch.count);
      const auto moment = static_cast<std::uint32_t>(flat_.kernels.size()) + 1;
      flat_.configurations.push_back({0, one.time.count(), static_cast<double>(bytes) / flat_.unit, bytes, c,
                                      bytes > 0 ? row(one.workspace, moment) : moment});
      made.has_scratch = made.has_scratch || bytes > 0;
    }
    made.end = static_cast<std::uint32_t>(flat_.configurations.size());
    std::stable_sort(flat_.configurations.begin() + made.first, flat_.configurations.end(),
                     [](const auto& a, const auto& b) { return a.time < b.time; });
    std::vector<std::vector<bool>> groups;
    for (std::size_t i = 0; i < kernel.operands.size(); ++i) add_links(kernel, made, i, groups);
    made.end_link = flat_.none();
    made.groups = static_cast<std::uint32_t>(groups.size());
    flat_.kernels.push_back(made);
    weigh(made);
  }

  bool is_possible(const KernelChoice& kernel, std::uint32_t configuration) const {
    for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
      if (places(kernel.operands[i])[0] > kernel.tier(configuration, i)) return false;
    }
    return true;
  }

  /// Adds a link of the operand for every tier but the slowest one it may lie in.
  void add_links(const KernelChoice& kernel, const Flat::Kernel& made, std::size_t i,
                 std::vector<std::vector<bool>>& groups) {
    const KernelOperand& operand = kernel.operands[i];
    Links& links = links_[first_use_[operand.tensor] + operand.use];
    links.first = flat_.none();
    std::vector<bool> before(made.end - made.first);
    for (std::uint32_t p = 0; p + 1 < places(operand).size(); ++p) {
      // A configuration asks for the link where the next slower tier would not do.
      std::vector<bool> asks;
      for (std::uint32_t c = made.first; c < made.end; ++c)
        asks.push_back(kernel.tier(flat_.configurations[c].index, i) < places(operand)[p + 1]);
      if (asks == before) continue;
      before = asks;
      links.tiers.add(places(operand)[p]);
      flat_.links.push_back({static_cast<std::uint32_t>(flat_.kernels.size()), group_of(asks, made, groups),
                             operand.tensor, 0, 0, links.tiers.size() == 1});
    }
    for (std::uint32_t l = links.first; l < flat_.none(); ++l) flat_.links[l].more = flat_.none() - l - 1;
  }

  std::uint32_t group_of(const std::vector<bool>& asks, const Flat::Kernel& made,
                         std::vector<std::vector<bool>>& groups) {
    const auto group =
        static_cast<std::size_t>(std::find(groups.begin(), groups.end(), asks) - groups.begin());
    if (group < groups.size()) return static_cast<std::uint32_t>(group);
    check(group < kMostGroups, "a kernel's configurations tell at most 64 groups of operands apart");
    groups.push_back(asks);
    for (std::uint32_t c = made.first; c < made.end; ++c) {
      if (asks[c - made.first]) flat_.configurations[c].mask |= std::uint64_t{1} << group;
    }
    return static_cast<std::uint32_t>(group);
  }

  /// Returns the kernel's least time with these groups not kept.
  double time(const Flat::Kernel& kernel, std::uint64_t slow) const {
    for (std::uint32_t c = kernel.first; c < kernel.end; ++c) {
      const Flat::Configuration& one = flat_.configurations[c];
      if ((one.mask & slow) == 0) return one.time;  // times ascend
    }
    return kImpossible;
  }

  /// Sets what each group saves as the last to come to fast memory, or as the first; a little where it saves
  /// nothing as either.
  void weigh(const Flat::Kernel& kernel) {
    const std::uint64_t all = ~std::uint64_t{0};
    const double best = time(kernel, 0), slowest = time(kernel, all);
    const double worst = slowest == kImpossible ? 2 * best : slowest;
    for (std::uint32_t l = kernel.first_link; l < kernel.end_link; ++l) {
      Flat::Link& link = flat_.links[l];
      const std::uint64_t bit = std::uint64_t{1} << link.group;
      const double last = std::min(time(kernel, bit), worst) - best;
      const double first = worst - std::min(time(kernel, all & ~bit), worst);
      link.worth = std::max({last, first, (worst - best) / 16});
    }
  }

  void add_tensor(const FlowGraph& graph) {
    const auto place = flat_.tensors.size();
    Flat::Tensor made{};
    made.first = static_cast<std::uint32_t>(flat_.edges.size());
    made.nodes = graph.nodes;
    made.bytes = static_cast<std::int64_t>(graph.size.count);
    made.size = static_cast<double>(made.bytes) / flat_.unit;
    std::size_t next = 0;
    std::vector<std::uint32_t> ends;
    for (std::uint32_t node = 0; node < graph.nodes; ++node) {
      const std::size_t before = next;
      for (; next < graph.edges.size() && graph.edges[next].from == node; ++next)
        add_edge(graph, place, next, made.nodes);
      if (next == before) ends.push_back(node);
    }
    for (const std::uint32_t node : ends) add_end(node, made.nodes);
    ++made.nodes;
    check(next == graph.edges.size(), "a flow graph's edges ascend in their first node");
    made.end = static_cast<std::uint32_t>(flat_.edges.size());
    flat_.most_nodes = std::max(flat_.most_nodes, made.nodes);
    flat_.tensors.push_back(made);
  }

  /// Adds an edge for every link that this one tells of. `nodes` counts the tensor's nodes so far.
  void add_edge(const FlowGraph& graph, std::size_t tensor, std::size_t index, std::uint32_t& nodes) {
    const Edge& edge = graph.edges[index];
    const auto kernels = static_cast<std::uint32_t>(flat_.kernels.size());
    Flat::Edge made{edge.from, edge.to, 0, 0, flat_.none(), kernels, edge.time.count()};
    Flat::Hidden hidden{0, 0};
    if (edge.first <= edge.last) {
      made.first = row(edge.pool, edge.first);
      made.end = row(edge.pool, edge.last) + 1;
    }
    if (edge.beside) {
      made.beside = edge.moment - 1;
      Flat::Kernel& kernel = flat_.kernels[made.beside];
      kernel.overlaps = true;
      if (kernel.first < kernel.end) {
        hidden.share = std::min(made.wait, flat_.configurations[kernel.end - 1].time);
        hidden.slower = hidden.share - std::min(made.wait, flat_.configurations[kernel.first].time);
      }
      made.wait -= hidden.share;
    }
    const Links none, &links = edge.use == kNone ? none : links_[first_use_[tensor] + edge.use];
    for (std::uint32_t i = 0; i < links.tiers.size(); ++i) {
      const bool is_last = i + 1 == links.tiers.size();
      made.slot = (edge.tier <= links.tiers[i] ? 0 : flat_.none() + 1) + links.first + i;
      made.to = is_last ? edge.to : nodes++;
      push(made, hidden, i == 0 ? static_cast<std::uint32_t>(index) : kNone);
      made = {made.to, edge.to, 0, 0, flat_.none(), kernels, 0};
      hidden = {0, 0};
    }
    if (links.tiers.size() == 0) push(made, hidden, static_cast<std::uint32_t>(index));
  }

  void add_end(std::uint32_t node, std::uint32_t end) {
    const auto kernels = static_cast<std::uint32_t>(flat_.kernels.size());
    push({node, end, 0, 0, flat_.none(), kernels, 0}, {0, 0}, kNone);
  }

  void push(const Flat::Edge& edge, const Flat::Hidden& hidden, std::uint32_t original) {
    flat_.edges.push_back(edge);
    flat_.hidden.push_back(hidden);
    flat_.original.push_back(original);
  }

  const Instance& instance_;
  std::vector<Pool> pools_;
  Flat flat_;
  std::vector<std::size_t> first_use_;  ///< by tensor, among those of all
  std::vector<Tiers> places_;           ///< by use: where some edge brings the tensor
  std::vector<Links> links_;            ///< by use
};

}  // namespace

std::vector<std::uint32_t> Flat::going_on() const {
  std::vector<std::uint32_t> found;
  for (const Tensor& tensor : tensors) {
    std::vector<std::uint32_t> in(tensor.nodes), out(tensor.nodes);
    for (std::uint32_t e = tensor.first; e < tensor.end; ++e) {
      ++in[edges[e].to];
      ++out[edges[e].from];
    }
    for (std::uint32_t e = tensor.first; e < tensor.end; ++e) {
      if (in[edges[e].from] == 1 && out[edges[e].from] == 1) found.push_back(e);
    }
  }
  return found;
}

double Flat::memory_worth() const {
  double worth = 0;
  for (const Link& link : links) worth += link.worth;
  return worth / moments;
}

Flat flatten(const Instance& instance) { return Flattening(instance).run(); }

}  // namespace terrace::autotm

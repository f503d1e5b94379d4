#include "planners/autotm/flat.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace terrace::autotm {
namespace {

constexpr TierId kFast{0};
constexpr std::size_t kMostGroups = 64;

/// Where some edge brings a tensor for a use.
struct Choices {
  bool fast = false, slow = false;
};

class Flattening {
 public:
  explicit Flattening(const Instance& instance) : instance_(instance) {
    flat_.moments = instance.moments();
    flat_.capacity = static_cast<std::int64_t>(instance.capacity.count);
    flat_.unit = std::max(1.0, static_cast<double>(flat_.capacity));
    flat_.room = static_cast<double>(flat_.capacity) / flat_.unit;
    for (const FlowGraph& graph : instance.tensors) add_choices(graph);
  }

  Flat run() {
    for (const KernelChoice& kernel : instance_.kernels) add_kernel(kernel);
    for (const FlowGraph& graph : instance_.tensors) add_tensor(graph);
    return std::move(flat_);
  }

 private:
  void add_choices(const FlowGraph& graph) {
    auto& uses = choices_.emplace_back(graph.uses.size());
    link_.emplace_back(graph.uses.size(), kNone);
    for (const Edge& edge : graph.edges) {
      if (edge.use != kNone) (edge.tier == kFast ? uses[edge.use].fast : uses[edge.use].slow) = true;
    }
  }
  const Choices& choices(const KernelOperand& operand) const { return choices_[operand.tensor][operand.use]; }

  void add_kernel(const KernelChoice& kernel) {
    Flat::Kernel made{};
    made.first_link = flat_.none();
    made.first = static_cast<std::uint32_t>(flat_.configurations.size());
    for (std::uint32_t c = 0; c < kernel.configurations.size(); ++c) {
      const Configuration& one = kernel.configurations[c];
      if (!is_possible(kernel, one)) continue;
      const auto bytes = static_cast<std::int64_t>(one.scratch.count);
      flat_.configurations.push_back(
          {0, one.time.count(), static_cast<double>(bytes) / flat_.unit, bytes, c});
      made.has_scratch = made.has_scratch || bytes > 0;
    }
    made.end = static_cast<std::uint32_t>(flat_.configurations.size());
    std::stable_sort(flat_.configurations.begin() + made.first, flat_.configurations.end(),
                     [](const auto& a, const auto& b) { return a.time < b.time; });
    std::vector<std::vector<bool>> groups;
    for (std::size_t i = 0; i < kernel.operands.size(); ++i) add_link(kernel, made, i, groups);
    made.end_link = flat_.none();
    made.groups = static_cast<std::uint32_t>(groups.size());
    flat_.kernels.push_back(made);
    weigh(made);
  }

  bool is_possible(const KernelChoice& kernel, const Configuration& one) const {
    for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
      if (one.tiers[i] == kFast && !choices(kernel.operands[i]).fast) return false;
    }
    return true;
  }

  void add_link(const KernelChoice& kernel, const Flat::Kernel& made, std::size_t i,
                std::vector<std::vector<bool>>& groups) {
    const KernelOperand& operand = kernel.operands[i];
    if (!choices(operand).slow) return;
    std::vector<bool> asks;
    for (std::uint32_t c = made.first; c < made.end; ++c)
      asks.push_back(kernel.configurations[flat_.configurations[c].index].tiers[i] == kFast);
    if (std::find(asks.begin(), asks.end(), true) == asks.end()) return;
    const auto group =
        static_cast<std::size_t>(std::find(groups.begin(), groups.end(), asks) - groups.begin());
    if (group == groups.size()) {
      check(group < kMostGroups, "a kernel's configurations tell at most 64 groups of operands apart");
      groups.push_back(asks);
      for (std::uint32_t c = made.first; c < made.end; ++c) {
        if (asks[c - made.first]) flat_.configurations[c].mask |= std::uint64_t{1} << group;
      }
    }
    link_[operand.tensor][operand.use] = flat_.none();
    flat_.links.push_back({static_cast<std::uint32_t>(flat_.kernels.size()),
                           static_cast<std::uint32_t>(group), operand.tensor, 0});
  }

  /// With these groups in slow memory.
  double time(const Flat::Kernel& kernel, std::uint64_t slow) const {
    double least = kNever;
    for (std::uint32_t c = kernel.first; c < kernel.end; ++c) {
      const Flat::Configuration& one = flat_.configurations[c];
      if ((one.mask & slow) == 0) least = std::min(least, one.time);
    }
    return least;
  }

  /// What a group saves as the last to come to fast memory, or as the first; a little where it is neither.
  void weigh(const Flat::Kernel& kernel) {
    const std::uint64_t all = ~std::uint64_t{0};
    const double best = time(kernel, 0), slowest = time(kernel, all);
    const double worst = slowest == kNever ? 2 * best : slowest;
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
    made.nodes = graph.nodes + 1;
    made.bytes = static_cast<std::int64_t>(graph.size.count);
    made.size = static_cast<double>(made.bytes) / flat_.unit;
    std::size_t next = 0;
    for (std::uint32_t node = 0; node < graph.nodes; ++node) {
      const std::size_t before = next;
      for (; next < graph.edges.size() && graph.edges[next].from == node; ++next)
        add_edge(graph, place, next);
      if (next == before) add_end(graph, node);
    }
    check(next == graph.edges.size(), "a flow graph's edges ascend in their first node");
    made.end = static_cast<std::uint32_t>(flat_.edges.size());
    flat_.most_nodes = std::max(flat_.most_nodes, made.nodes);
    flat_.tensors.push_back(made);
  }

  void add_edge(const FlowGraph& graph, std::size_t tensor, std::size_t index) {
    const Edge& edge = graph.edges[index];
    const auto kernels = static_cast<std::uint32_t>(flat_.kernels.size());
    Flat::Edge made{edge.from, edge.to, 0, 0, flat_.none(), kernels, edge.time.count()};
    Flat::Hidden hidden{0, 0};
    if (edge.first <= edge.last) {
      made.first = edge.first;
      made.end = edge.last + 1;
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
    const std::uint32_t link = edge.use == kNone ? kNone : link_[tensor][edge.use];
    if (link != kNone) made.slot = edge.tier == kFast ? link : flat_.none() + 1 + link;
    flat_.edges.push_back(made);
    flat_.hidden.push_back(hidden);
    flat_.original.push_back(static_cast<std::uint32_t>(index));
  }

  void add_end(const FlowGraph& graph, std::uint32_t node) {
    const auto kernels = static_cast<std::uint32_t>(flat_.kernels.size());
    flat_.edges.push_back({node, graph.nodes, 0, 0, flat_.none(), kernels, 0});
    flat_.hidden.push_back({0, 0});
    flat_.original.push_back(kNone);
  }

  static constexpr double kNever = std::numeric_limits<double>::infinity();

  const Instance& instance_;
  Flat flat_;
  std::vector<std::vector<Choices>> choices_;     ///< by tensor and use
  std::vector<std::vector<std::uint32_t>> link_;  ///< by tensor and use; kNone: none
};

}  // namespace

double Flat::memory_worth() const {
  double worth = 0;
  for (const Link& link : links) worth += link.worth;
  return worth / moments;
}

Flat flatten(const Instance& instance) { return Flattening(instance).run(); }

}  // namespace terrace::autotm

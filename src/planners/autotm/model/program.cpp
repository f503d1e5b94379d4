// SPDX-License-Identifier: Apache-2.0
// Numbers in comments are those of 001's equations. The variables are
//   x_t,e   tensor t takes edge e of its flow graph
//   f_t,u   use u of tensor t finds it in fast memory, or in a pool or a faster one (eq. 3; eq. 4 says the
//   same of
//           edges that stay there)
//   d_k,c   kernel k runs in configuration c, a placement and an implementation (eq. 6 and 10)
#include "planners/autotm/model/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "optim/cbc.hpp"

namespace terrace::autotm {

using optim::Milp;
using optim::MilpResult;
using optim::MilpStatus;
using optim::Term;

namespace {

/// The program measures time and memory in units of the step and of fast memory, because the solver's
/// tolerances are absolute.
constexpr double kScale = 1e4;

class Program {
 public:
  Program(const Instance& instance, Linking linking) : instance_(instance), pools_(instance.pools()) {
    set_units();
    for (const FlowGraph& graph : instance.tensors) add_flow(graph);
    for (std::uint32_t k = 0; k < instance.kernels.size(); ++k) add_kernel(k, linking);
    add_moves_beside();
    for (const Pool& pool : pools_) add_capacity(pool);
  }

  Result<Solved> solve(const SolverLimits& limits) const {
    const MilpResult result = milp_.solve(limits.gap, {limits.time, limits.nodes});
    if (result.status == MilpStatus::infeasible) return Error{ErrorCode::too_large, {}};
    if (result.status == MilpStatus::unknown) {
      return Error{
          ErrorCode::unsupported,
          fmt::format(
              "CBC found no solution within {} s and {} nodes: allow more with seconds=, or take solver=fast",
              limits.time.count(), limits.nodes)};
    }
    Solved solved;
    solved.solution = solution(result.values);
    solved.objective = step_time(instance_, solved.solution);
    solved.bound = std::min(result.bound * second_, solved.objective);
    solved.proven = result.status == MilpStatus::proven;
    return solved;
  }

 private:
  using Kind = Milp::Kind;

  void set_units() {
    Seconds least{0};
    for (const KernelChoice& kernel : instance_.kernels) {
      least +=
          std::min_element(kernel.configurations.begin(), kernel.configurations.end(), [](auto& a, auto& b) {
            return a.time < b.time;
          })->time;
    }
    if (least.count() > 0) second_ = least / kScale;
    if (instance_.capacity.count > 0) byte_ = static_cast<double>(instance_.capacity.count) / kScale;
  }
  double seconds(Seconds time) const { return time / second_; }
  double bytes(Bytes size) const { return static_cast<double>(size.count) / byte_; }

  /// Section 3.1: one unit flows from the source to the end. The time of moves that all wait for is the
  /// second sum of eq. 2, tensor by tensor.
  void add_flow(const FlowGraph& graph) {
    std::vector<int>& edges = edge_.emplace_back();
    std::vector<std::vector<Term>> balance(graph.nodes);
    std::vector<bool> left(graph.nodes);
    for (const Edge& edge : graph.edges) {
      const int x = milp_.add_variable(Kind::binary, edge.beside ? 0 : seconds(edge.time));
      edges.push_back(x);
      balance[edge.from].push_back({x, 1});
      balance[edge.to].push_back({x, -1});
      left[edge.from] = true;
    }
    for (std::uint32_t node = 0; node < graph.nodes; ++node) {
      if (left[node]) milp_.add_equal(balance[node], node == 0 ? 1 : 0);
    }
  }

  /// Eq. 3: subtracts the edges by which a use finds the tensor in this tier or a faster one. Returns whether
  /// there are other edges.
  bool add_edges(std::vector<Term>& terms, const KernelOperand& operand, TierId slowest) const {
    const FlowGraph& graph = instance_.tensors[operand.tensor];
    bool others = false;
    for (std::size_t e = 0; e < graph.edges.size(); ++e) {
      const Edge& edge = graph.edges[e];
      if (edge.use != operand.use) continue;
      if (edge.tier <= slowest) terms.push_back({edge_[operand.tensor][e], -1});
      others = others || edge.tier > slowest;
    }
    return others;
  }

  /// Eq. 6 and 10: a kernel runs in one configuration, whose time is part of the objective (eq. 1). Its
  /// variable has to be an integer only where the configuration takes memory of its own: otherwise no mixture
  /// of configurations is faster than the fastest of them.
  void add_kernel(std::uint32_t k, Linking linking) {
    const KernelChoice& kernel = instance_.kernels[k];
    std::vector<int>& configurations = configuration_.emplace_back();
    std::vector<Term> one;
    for (const Configuration& configuration : kernel.configurations) {
      const Kind kind = has_scratch(kernel) ? Kind::binary : Kind::continuous;
      configurations.push_back(milp_.add_variable(kind, seconds(configuration.time)));
      one.push_back({configurations.back(), 1});
    }
    milp_.add_equal(one, 1);
    for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
      for (const Pool& pool : pools_) link(k, i, pool.tier, linking);
    }
  }

  static bool has_scratch(const KernelChoice& kernel) {
    return std::any_of(kernel.configurations.begin(), kernel.configurations.end(),
                       [](const Configuration& one) { return one.scratch > Bytes{}; });
  }

  /// A configuration that asks for the operand in this tier or a faster one may run only if it lies there.
  void link(std::uint32_t k, std::size_t operand, TierId slowest, Linking linking) {
    const KernelChoice& kernel = instance_.kernels[k];
    std::vector<Term> together;
    for (std::size_t c = 0; c < kernel.configurations.size(); ++c) {
      if (kernel.tier(c, operand) > slowest) continue;
      std::vector<Term> each{{configuration_[k][c], 1}};
      together.push_back(each[0]);
      if (linking == Linking::tight || kernel.tier(c, operand) != slowest) continue;
      if (add_edges(each, kernel.operands[operand], slowest)) milp_.add_at_most(each, 0);
    }
    if (linking == Linking::paper || together.empty()) return;
    if (add_edges(together, kernel.operands[operand], slowest)) milp_.add_at_most(together, 0);
  }

  /// Eq. 7: adds the time by which the moves beside a kernel take longer than the kernel (eq. 8), for
  /// max{a, b} = a + max{0, b - a}.
  void add_moves_beside() {
    std::vector<std::vector<Term>> beside(instance_.moments());
    for (std::size_t t = 0; t < instance_.tensors.size(); ++t) {
      const auto& edges = instance_.tensors[t].edges;
      for (std::size_t e = 0; e < edges.size(); ++e) {
        if (edges[e].beside) beside[edges[e].moment].push_back({edge_[t][e], seconds(edges[e].time)});
      }
    }
    for (std::uint32_t k = 0; k < instance_.kernels.size(); ++k) {
      std::vector<Term>& row = beside[k + 1];
      if (row.empty()) continue;
      const auto& configurations = instance_.kernels[k].configurations;
      for (std::size_t c = 0; c < configurations.size(); ++c) {
        row.push_back({configuration_[k][c], -seconds(configurations[c].time)});
      }
      row.push_back({milp_.add_variable(Kind::continuous, 1), -1});
      milp_.add_at_most(row, 0);
    }
  }

  /// Eq. 5 and 9, which also hold at the start and the end of the step. One variable sums up the bytes that
  /// stay over several moments; it changes only where a stay begins or ends, which keeps rows short.
  void add_capacity(const Pool& pool) {
    const std::uint32_t moments = instance_.moments();
    std::vector<std::vector<Term>> instant(moments), change(moments + 1);
    for (std::size_t t = 0; t < instance_.tensors.size(); ++t) {
      const FlowGraph& graph = instance_.tensors[t];
      for (std::size_t e = 0; e < graph.edges.size(); ++e) {
        const Edge& edge = graph.edges[e];
        const Term term{edge_[t][e], bytes(graph.size)};
        if (edge.pool != pool.tier || edge.first > edge.last || graph.size == Bytes{}) continue;
        if (edge.first == edge.last) {
          instant[edge.first].push_back(term);
        } else {
          change[edge.first].push_back({term.variable, -term.factor});
          change[edge.last + 1].push_back(term);
        }
      }
    }
    const std::vector<Bytes> most = most_bytes(pool.tier);
    int carried = -1;
    for (std::uint32_t m = 0; m < moments; ++m) {
      if (!change[m].empty()) carried = carry(carried, change[m]);
      if (most[m] > pool.capacity) limit(pool, m, instant[m], carried);
    }
  }

  int carry(int before, std::vector<Term>& change) {
    const int after = milp_.add_variable(Kind::continuous, 0);
    change.push_back({after, 1});
    if (before >= 0) change.push_back({before, -1});
    milp_.add_equal(change, 0);
    return after;
  }

  void limit(const Pool& pool, std::uint32_t moment, std::vector<Term>& row, int carried) {
    if (carried >= 0) row.push_back({carried, 1});
    if (moment > 0 && moment <= instance_.kernels.size()) {
      const auto& configurations = instance_.kernels[moment - 1].configurations;
      for (std::size_t c = 0; c < configurations.size(); ++c) {
        if (configurations[c].scratch == Bytes{} || configurations[c].workspace != pool.tier) continue;
        row.push_back({configuration_[moment - 1][c], bytes(configurations[c].scratch)});
      }
    }
    milp_.add_at_most(row, bytes(pool.capacity));
  }

  /// Returns the bytes at each moment if everything were in this pool; a moment at which that fits needs no
  /// row.
  std::vector<Bytes> most_bytes(TierId pool) const {
    std::vector<Bytes> most(instance_.moments());
    for (const FlowGraph& graph : instance_.tensors) {
      std::vector<bool> seen(instance_.moments());
      for (const Edge& edge : graph.edges) {
        if (edge.pool != pool) continue;
        for (std::uint32_t m = edge.first; m <= edge.last; ++m) {
          if (!seen[m]) most[m] += graph.size;
          seen[m] = true;
        }
      }
    }
    for (std::uint32_t k = 0; k < instance_.kernels.size(); ++k) {
      Bytes scratch;
      for (const Configuration& one : instance_.kernels[k].configurations)
        scratch = std::max(scratch, one.workspace == pool ? one.scratch : Bytes{});
      most[k + 1] += scratch;
    }
    return most;
  }

  Solution solution(const std::vector<double>& values) const {
    Solution found;
    std::vector<std::vector<TierId>> tiers;
    for (std::size_t t = 0; t < instance_.tensors.size(); ++t) {
      found.paths.push_back(path(t, values));
      tiers.push_back(places(instance_.tensors[t], found.paths.back()));
    }
    for (std::uint32_t k = 0; k < instance_.kernels.size(); ++k) {
      found.configurations.push_back(
          has_scratch(instance_.kernels[k]) ? chosen(k, values) : fastest(instance_.kernels[k], tiers));
    }
    return found;
  }

  std::vector<std::uint32_t> path(std::size_t t, const std::vector<double>& values) const {
    std::vector<std::uint32_t> taken;
    std::uint32_t node = 0;
    const auto& edges = instance_.tensors[t].edges;
    for (std::uint32_t e = 0; e < edges.size(); ++e) {
      if (edges[e].from != node || values[static_cast<std::size_t>(edge_[t][e])] < 0.5) continue;
      taken.push_back(e);
      node = edges[e].to;
    }
    return taken;
  }

  std::uint32_t chosen(std::uint32_t k, const std::vector<double>& values) const {
    const auto& all = configuration_[k];
    return static_cast<std::uint32_t>(std::max_element(all.begin(), all.end(),
                                                       [&](int a, int b) {
                                                         return values[static_cast<std::size_t>(a)] <
                                                                values[static_cast<std::size_t>(b)];
                                                       }) -
                                      all.begin());
  }

  const Instance& instance_;
  std::vector<Pool> pools_;
  Seconds second_{1};  ///< one unit of the objective
  double byte_ = 1;    ///< one unit of capacity, in bytes
  Milp milp_;
  std::vector<std::vector<int>> edge_;           ///< x, by tensor and edge
  std::vector<std::vector<int>> configuration_;  ///< d, by kernel and configuration
};

}  // namespace

Result<Solved> solve_program(const Instance& instance, Linking linking, SolverLimits limits) {
  return Program(instance, linking).solve(limits);
}

Result<Solved> solve_exactly(const PlanRequest& request, const Instance& instance, Linking linking,
                             SolverLimits limits) {
  if (!optim::has_cbc()) {
    return Error{ErrorCode::unsupported,
                 "this build has no CBC: install coinor-libcbc-dev and build again, or take another planner"};
  }
  auto solved = solve_program(instance, linking, limits);
  if (!solved && solved.error().code == ErrorCode::too_large) return explain_infeasible(request, instance);
  return solved;
}

}  // namespace terrace::autotm

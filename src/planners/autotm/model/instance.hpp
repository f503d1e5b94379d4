// SPDX-License-Identifier: Apache-2.0
// AutoTM's placement problem (001 sections 3 and 7) as plain data, which its exact programs and any other
// solver share.
//
//   moment   a time at which memory is counted: 0 is the step's start, k + 1 is kernel k, and one more after
//            the last kernel is the step's end
//   use      a moment at which a tensor has to be somewhere: a kernel that reads or writes it; the start for
//            what is given or kept from step to step; the end for results and for what is kept
//   path     what happens to one tensor from its first use to its last, as edges of its flow graph G_t
//            (001 section 3.1). Taken alone, a tensor's best path is a shortest one
//
//   pool     a tier whose bytes are counted at every moment: all but the slowest
//
// Two things couple the paths: the bytes in each pool at each moment, and that a kernel's time depends on
// where its operands lie. The three formulations differ in their flow graphs and in nothing else. There are
// two tiers, or three where the second cannot hold what is live at once and there is a third.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "terrace/plan_request.hpp"

namespace terrace::autotm {

enum class Formulation {
  fixed,         ///< a tensor lies in one tier for its life (001 fig. 6a, "static")
  synchronous,   ///< it moves right before and after the kernels that use it; they wait (001 fig. 6b)
  asynchronous,  ///< it also moves beside a kernel (001 section 7)
};

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kMostTiers = 3;
constexpr TierId kFast{0};

struct TensorUse {
  std::uint32_t moment = 0;
  bool reads = false, writes = false;
};

enum class Move : std::uint8_t {
  none,
  out,    ///< written to a slower tier and gone from the source: after `moment`, or beside it
  drop,   ///< gone from the source after `moment`; what is elsewhere is current
  in,     ///< read from a slower tier: before `moment`, or beside it
  renew,  ///< gone after `moment`: what it holds is never read, and its next use makes it anew
};

struct Edge {
  std::uint32_t from = 0, to = 0;  ///< nodes; from < to
  std::uint32_t use = kNone;       ///< the use that it leads to, if any; that finds the tensor in `tier`
  TierId tier;
  Move move = Move::none;
  bool beside = false;                ///< the move overlaps with the kernel of `moment` (001 eq. 8)
  bool frees = false;                 ///< a move in after which the source is gone, too
  TierId source, target;              ///< of the move
  std::uint32_t moment = 0;           ///< of the move
  Seconds time{0};                    ///< of the move
  TierId pool;                        ///< takes memory there
  std::uint32_t first = 1, last = 0;  ///< at these moments, both included; first > last: never

  bool occupies(TierId of, std::uint32_t at) const { return pool == of && first <= at && at <= last; }
};

/// Every path goes from node 0 to a node that no edge leaves, and passes every use. What takes memory in two
/// pools at once is two edges, one after the other; none takes that of one pool at one moment twice.
struct FlowGraph {
  TensorId tensor;
  Bytes size;  ///< what it takes of a pool
  std::vector<TensorUse> uses;
  std::uint32_t nodes = 1;
  std::vector<Edge> edges;  ///< ascending in `from`
};

/// One implementation of a kernel with its operands in these tiers *or faster ones*: configurations that are
/// no faster than one that asks for less, and those beyond the capacity, are left out. So a placement's time
/// is that of the fastest configuration it satisfies.
struct Configuration {
  std::uint32_t variant = 0;
  TierId workspace;  ///< meaningless without one
  Bytes scratch;     ///< of the workspace's tier, if that is a pool (s_k,i in 001 eq. 9)
  Seconds time{0};   ///< n_k,c,i in 001 eq. 10
};

/// A tensor that a kernel uses, each once; its workspace is part of the configuration.
struct KernelOperand {
  std::uint32_t tensor = 0;  ///< place in Instance::tensors
  std::uint32_t use = 0;     ///< place in its uses
};

struct KernelChoice {
  std::vector<KernelOperand> operands;
  std::vector<Configuration> configurations;  ///< at least one
  /// By configuration, then by operand. Large problems have millions: one array of bytes for each kernel.
  std::vector<std::uint8_t> tiers;

  /// That a configuration asks for, or a faster one.
  TierId tier(std::size_t configuration, std::size_t operand) const {
    return {tiers[configuration * operands.size() + operand]};
  }
  /// `asked`: a tier for every operand.
  void add(const Configuration& one, std::span<const TierId> asked) {
    configurations.push_back(one);
    for (const TierId tier : asked) tiers.push_back(static_cast<std::uint8_t>(tier.index));
  }
};

struct Pool {
  TierId tier;
  Bytes capacity;
};

struct Instance {
  Formulation formulation = Formulation::fixed;
  TierId slow;                ///< the slowest tier, which is no pool; tier 0 where the machine has no other
  Bytes capacity;             ///< of fast memory, at every moment
  std::vector<Pool> between;  ///< faster than `slow` and slower than tier 0: none or one
  std::vector<FlowGraph> tensors;
  std::vector<KernelChoice> kernels;

  std::uint32_t moments() const { return static_cast<std::uint32_t>(kernels.size()) + 2; }
  /// From the fastest on.
  std::vector<Pool> pools() const;
  /// Those and the slowest.
  std::vector<TierId> tiers() const;
};

/// Fails where a kernel alone, or what must be there at its start or end, exceeds the capacity: names it.
/// `capacities`: of each tier of the machine. pre: none is above its budget
Result<Instance> make_instance(const PlanRequest& request, Formulation formulation,
                               std::vector<Bytes> capacities);
/// With so much fast memory and the budget of all other tiers. pre: capacity <= request.budget[0]
Result<Instance> make_instance(const PlanRequest& request, Formulation formulation, Bytes capacity);

/// A path for each tensor, as edges, and a configuration for each kernel.
struct Solution {
  std::vector<std::vector<std::uint32_t>> paths;
  std::vector<std::uint32_t> configurations;
};

/// The time of the step (001 eq. 1, 2 and 7): kernels, each or the moves beside it, whichever takes longer,
/// and the moves that all wait for.
Seconds step_time(const Instance& instance, const Solution& solution);
/// Bytes of a pool at each moment (the left side of 001 eq. 5 and 9).
std::vector<Bytes> occupancy(const Instance& instance, const Solution& solution, TierId pool = {});
/// Returns whether no pool ever holds more than its capacity.
bool is_within_capacities(const Instance& instance, const Solution& solution);
/// Returns where each use of a tensor finds it on a path.
std::vector<TierId> places(const FlowGraph& graph, const std::vector<std::uint32_t>& path);
/// The fastest configuration that a placement satisfies, by the tier of every use of every tensor; of equal
/// ones the one with the least scratch. Whether its scratch fits is for the caller to see.
std::uint32_t fastest(const KernelChoice& kernel, const std::vector<std::vector<TierId>>& tiers);

}  // namespace terrace::autotm

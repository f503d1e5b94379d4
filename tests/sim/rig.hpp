// SPDX-License-Identifier: Apache-2.0
// Small machines and graphs on which timelines can be computed by hand: links carry one byte a second, and
// kernels take the seconds they are given.
#pragma once

#include <initializer_list>
#include <vector>

#include "terrace/simulate.hpp"

namespace terrace {

inline constexpr TierId kFast{0}, kSlow{1};

inline Link byte_per_second(TierId from, TierId to, double both_ways, double compute_loss) {
  return {from, to, {{Bytes{1}, {1}}}, both_ways, compute_loss, 1};
}

/// A third tier like the slow one.
inline void add_tier(Machine& machine) {
  machine.tiers.push_back(machine.tiers.back());
  machine.tiers.back().name = "slower";
}

/// Two tiers and both links between them.
inline Machine two_tiers(double both_ways = 1, double compute_loss = 0) {
  Machine machine;
  machine.name = "rig";
  for (const char* name : {"fast", "slow"}) {
    MachineTier tier;
    tier.name = name;
    tier.capacity = Bytes{1 << 20};
    tier.granularity = Bytes{1};
    tier.read = tier.write = {1};
    machine.tiers.push_back(tier);
  }
  machine.compute.flops_per_second = 1;
  machine.links = {byte_per_second(kFast, kSlow, both_ways, compute_loss),
                   byte_per_second(kSlow, kFast, both_ways, compute_loss)};
  return machine;
}

/// Kernels without operands, and tensors they know nothing of.
inline Graph bare_graph(const std::vector<double>& kernel_seconds,
                        const std::vector<std::uint64_t>& tensor_bytes) {
  Graph graph;
  for (const double seconds : kernel_seconds) {
    Kernel kernel;
    kernel.variants = {{"", {}, Seconds{seconds}}};
    graph.kernels.push_back(kernel);
  }
  for (const std::uint64_t bytes : tensor_bytes) {
    Tensor tensor;
    tensor.bytes = Bytes{bytes};
    graph.tensors.push_back(tensor);
  }
  return graph;
}

// GoogleTest's own Run hides the instruction's name in the body of a test.
inline Run run(std::uint32_t kernel, std::uint32_t variant = 0, std::vector<TierId> tiers = {}) {
  return {{kernel}, variant, std::move(tiers)};
}
inline Copy copy(std::uint32_t tensor, TierId from, TierId to, std::uint32_t ticket) {
  return {{{tensor}}, from, to, ticket};
}
inline Copy out(std::uint32_t tensor, std::uint32_t ticket) { return copy(tensor, kFast, kSlow, ticket); }
inline Copy in(std::uint32_t tensor, std::uint32_t ticket) { return copy(tensor, kSlow, kFast, ticket); }

inline Timeline timeline_of(const Graph& graph, const Machine& machine,
                            std::vector<Instruction> instructions) {
  Plan plan;
  plan.instructions = std::move(instructions);
  return simulate(graph, machine, estimate(graph, machine), plan);
}

}  // namespace terrace

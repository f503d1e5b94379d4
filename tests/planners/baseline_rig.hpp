// SPDX-License-Identifier: Apache-2.0
// Small steps on which what a baseline does can be said beforehand.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "terrace/planner.hpp"

namespace terrace {

/// Two tiers; transfers of a megabyte take a megabyte over `rate`, kernels the time they are given.
inline Machine rig_machine(double rate, bool addressable) {
  Machine machine;
  machine.name = "rig";
  machine.compute = {"any", 1, 1e12};
  for (const char* name : {"fast", "slow"}) {
    MachineTier tier;
    tier.name = name;
    tier.capacity = Bytes{std::uint64_t{8} << 30};
    tier.addressable = machine.tiers.empty() || addressable;
    tier.read = tier.write = {machine.tiers.empty() ? 1e11 : rate};
    machine.tiers.push_back(tier);
  }
  machine.links = {{{0}, {1}, {{Bytes{1 << 20}, {rate}}}, 1, 0, 1},
                   {{1}, {0}, {{Bytes{1 << 20}, {rate}}}, 1, 0, 1}};
  return machine;
}

class RigGraph {
 public:
  TensorId tensor(const std::string& name, std::uint64_t bytes, TensorKind kind, bool persistent = false) {
    Tensor tensor;
    tensor.name = name;
    tensor.shape = {static_cast<std::int64_t>(bytes)};
    tensor.type = DataType::u8;
    tensor.kind = kind;
    tensor.persistent = persistent;
    tensor.bytes = {bytes};
    graph.tensors.push_back(tensor);
    return {static_cast<std::uint32_t>(graph.tensors.size() - 1)};
  }
  /// In a layer of its own.
  void kernel(const std::string& name, const std::vector<TensorId>& reads,
              const std::vector<TensorId>& writes, Phase phase, double seconds) {
    Kernel kernel;
    kernel.name = name;
    for (const TensorId id : reads) kernel.inputs.push_back({id, graph[id].shape, graph[id].bytes, {}});
    for (const TensorId id : writes) kernel.outputs.push_back({id, graph[id].shape, graph[id].bytes, {}});
    kernel.phase = phase;
    kernel.layer = static_cast<std::uint32_t>(graph.layers.size());
    kernel.variants = {{"", {}, Seconds{seconds}}};
    graph.layers.push_back(name);
    graph.kernels.push_back(kernel);
  }
  Graph graph;
};

constexpr std::uint64_t kMega = 1 << 20;

/// x > a1 > a2 ... > an, and back: d = f(d, a). Every tensor has a megabyte but d0, the small result; every
/// kernel takes a second.
inline Graph rig_chain(int length) {
  RigGraph rig;
  std::vector<TensorId> made{rig.tensor("x", kMega, TensorKind::input)};
  for (int i = 1; i <= length; ++i) {
    made.push_back(rig.tensor("a" + std::to_string(i), kMega, TensorKind::activation));
    rig.kernel("forward" + std::to_string(i), {made[made.size() - 2]}, {made.back()}, Phase::forward, 1);
  }
  TensorId gradient = made.back();
  for (int i = length - 1; i >= 0; --i) {
    const TensorId next = rig.tensor("d" + std::to_string(i), i == 0 ? 64 : kMega, TensorKind::gradient);
    rig.kernel("backward" + std::to_string(i), {gradient, made[static_cast<std::size_t>(i)]}, {next},
               Phase::backward, 1);
    gradient = next;
  }
  rig.graph.results = {gradient};
  return rig.graph;
}

/// A graph on a machine, to be planned and asked about.
struct Planned {
  Graph graph;
  Machine machine;
  Profile profile;
  Planned(Graph of, Machine on)
      : graph(std::move(of)), machine(std::move(on)), profile(estimate(graph, machine)) {}
  /// With so much of the fastest tier and all of the others.
  PlanRequest request(std::uint64_t fast, std::uint64_t seed = 1) const {
    PlanRequest made{graph, machine, profile, {}, seed, {}};
    for (const MachineTier& tier : machine.tiers) made.budget.push_back(tier.capacity);
    made.budget[0] = Bytes{fast};
    return made;
  }
};

/// Names of the tensors that a plan copies from this tier.
inline std::set<std::string> copied(const Planned& planned, const Plan& plan, TierId from) {
  std::set<std::string> names;
  for (const Instruction& instruction : plan.instructions) {
    const auto* copy = std::get_if<Copy>(&instruction);
    if (copy == nullptr || copy->from != from) continue;
    for (const TensorId tensor : copy->tensors) names.insert(planned.graph[tensor].name);
  }
  return names;
}

inline std::size_t runs(const Plan& plan) {
  std::size_t count = 0;
  for (const Instruction& instruction : plan.instructions) count += std::holds_alternative<Run>(instruction);
  return count;
}

}  // namespace terrace

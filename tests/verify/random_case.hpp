// SPDX-License-Identifier: Apache-2.0
// A random graph on a random machine with a random budget, and a random plan for it.
#pragma once

#include "support/random_graph.hpp"
#include "support/random_machine.hpp"
#include "support/random_plan.hpp"

namespace terrace::testing {

struct RandomCase {
  Graph graph;
  Machine machine;
  Plan plan;
};

/// Small tensors, some of them empty: what counts is where they lie, and bytes cost time.
inline RandomCase random_case(std::uint64_t seed) {
  RandomGraphOptions options;
  options.kernels = static_cast<std::uint32_t>(4 + seed % 13);
  options.least = Bytes{1};
  options.most = Bytes{1500};
  options.workspace_share = 0.25;
  options.rewrite_share = 0.2;
  RandomCase made{random_graph(options, seed), random_machine(seed), {}};
  SplitMix random(seed);
  for (Tensor& tensor : made.graph.tensors) {
    if (random.below(12) != 0) continue;
    tensor.bytes = {};
    tensor.shape = {0};
  }
  for (Kernel& kernel : made.graph.kernels) {
    for (auto* operands : {&kernel.inputs, &kernel.outputs}) {
      for (Operand& operand : *operands) operand.shape = made.graph[operand.tensor].shape;
    }
    if (random.below(4) == 0) kernel.variants = {{"plain", {}, {}}, {"other", {}, {}}};
  }
  const auto budget = random_budget(made.graph, made.machine, seed);
  made.plan = random_plan(made.graph, made.machine, budget, seed);
  return made;
}

}  // namespace terrace::testing

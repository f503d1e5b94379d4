// A small graph, a machine of three tiers and a correct plan, for tests that break one thing at a time.
//
//   forward: y = f(x, w), with a workspace     update: w = g(w, y)     last: z = h(y), the result
// The plan keeps w on the disk, and y goes to `slow` and back while `update` runs.
#pragma once

#include "terrace/plan.hpp"

namespace terrace::testing {

struct HandMade {
  enum Tensors : std::uint32_t { x, w, y, s, z, e };
  enum Tiers : std::uint32_t { fast, slow, disk };
  enum Kernels : std::uint32_t { forward, update, last };

  Graph graph = make_graph();
  Machine machine = make_machine();
  Plan plan = make_plan();

  static Graph make_graph() {
    Graph graph;
    graph.name = "hand made";
    graph.layers = {"all"};
    const auto tensor = [&](const char* name, std::uint32_t bytes, TensorKind kind) {
      Tensor made;
      made.name = name;
      made.shape = {bytes};
      made.type = DataType::u8;
      made.kind = kind;
      made.persistent = kind == TensorKind::weight;
      made.bytes = Bytes{bytes};
      graph.tensors.push_back(made);
    };
    tensor("x", 100, TensorKind::input);
    tensor("w", 200, TensorKind::weight);
    tensor("y", 300, TensorKind::activation);
    tensor("s", 64, TensorKind::workspace);
    tensor("z", 4, TensorKind::activation);
    tensor("e", 0, TensorKind::activation);
    const auto kernel = [&](const char* name, std::vector<std::uint32_t> inputs,
                            std::vector<std::uint32_t> outputs) {
      Kernel made;
      made.name = name;
      made.operation = "by.hand";
      for (const std::uint32_t i : inputs)
        made.inputs.push_back({{i}, graph.tensors[i].shape, graph.tensors[i].bytes, {}});
      for (const std::uint32_t i : outputs)
        made.outputs.push_back({{i}, graph.tensors[i].shape, graph.tensors[i].bytes, {}});
      graph.kernels.push_back(made);
    };
    kernel("forward", {x, w}, {y, e});
    graph.kernels[0].workspace = {s};
    graph.kernels[0].variants = {{"small", {}, {}}, {"large", Bytes{64}, {}}};
    kernel("update", {w, y}, {w});
    kernel("last", {y, e}, {z});
    graph.results = {{z}};
    return graph;
  }

  static Machine make_machine() {
    Machine machine;
    machine.name = "hand made";
    machine.compute = {"any", 1, 1e9};
    for (const char* name : {"fast", "slow", "disk"}) {
      MachineTier tier;
      tier.name = name;
      tier.capacity = Bytes{1 << 20};
      tier.read = tier.write = {1e9};
      machine.tiers.push_back(tier);
    }
    machine.tiers[disk].addressable = false;
    machine.tiers[disk].granularity = Bytes{4096};
    const auto link = [&](std::uint32_t from, std::uint32_t to) {
      machine.links.push_back({{from}, {to}, {{Bytes{4096}, {1e9}}}});
    };
    link(fast, slow), link(slow, fast), link(fast, disk), link(disk, fast);
    return machine;
  }

  static Plan make_plan() {
    Plan plan;
    plan.planner = "hand";
    plan.budget = {Bytes{1024}, Bytes{4096}, Bytes{8192}};
    plan.start = {{{x}, {fast}, 0}, {{w}, {disk}, 0}};
    plan.instructions = {
        Alloc{{w}, {fast}, 128},                                      // 0
        Copy{{{w}}, {disk}, {fast}, 1},                               // 1
        Alloc{{y}, {fast}, 384},                                      // 2
        Alloc{{s}, {fast}, 704},                                      // 3
        Alloc{{e}, {slow}, 0},                                        // 4
        Wait{1},                                                      // 5
        Run{{forward}, 1, {{fast}, {fast}, {fast}, {slow}, {fast}}},  // 6
        Free{{s}, {fast}},                                            // 7
        Alloc{{y}, {slow}, 64},                                       // 8
        Copy{{{y}}, {fast}, {slow}, 2},                               // 9
        Run{{update}, 0, {{fast}, {fast}, {fast}}},                   // 10
        Wait{2},                                                      // 11
        Copy{{{w}}, {fast}, {disk}, 3},                               // 12
        Free{{y}, {fast}},                                            // 13
        Alloc{{z}, {fast}, 384},                                      // 14
        Run{{last}, 0, {{slow}, {slow}, {fast}}},                     // 15
        Free{{y}, {slow}},                                            // 16
        Free{{e}, {slow}},                                            // 17
        Wait{3},                                                      // 18
        Free{{w}, {fast}},                                            // 19
    };
    return plan;
  }
};

}  // namespace terrace::testing

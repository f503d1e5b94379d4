// Builds graphs of a few tensors and kernels whose times a reader can add up.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "terrace/graph.hpp"

namespace terrace {

struct ByHand {
  Graph graph;

  ByHand() {
    graph.name = "by hand";
    graph.layers = {"only"};
  }
  TensorId tensor(std::string name, TensorKind kind, std::uint64_t bytes) {
    graph.tensors.push_back({std::move(name),
                             {static_cast<std::int64_t>(bytes / 4)},
                             DataType::f32,
                             kind,
                             false,
                             Bytes{bytes},
                             {},
                             {},
                             {}});
    return TensorId{static_cast<std::uint32_t>(graph.tensors.size() - 1)};
  }
  void kernel(std::vector<TensorId> inputs, std::vector<TensorId> outputs, std::vector<Variant> variants) {
    Kernel made;
    made.name = "k" + std::to_string(graph.kernels.size());
    for (const TensorId id : inputs) made.inputs.push_back({id, graph[id].shape, graph[id].bytes, {}});
    for (const TensorId id : outputs) made.outputs.push_back({id, graph[id].shape, graph[id].bytes, {}});
    made.variants = std::move(variants);
    graph.kernels.push_back(std::move(made));
  }
  void kernel(std::vector<TensorId> inputs, std::vector<TensorId> outputs, Seconds time) {
    kernel(std::move(inputs), std::move(outputs), {{"", Bytes{}, time}});
  }
};

}  // namespace terrace

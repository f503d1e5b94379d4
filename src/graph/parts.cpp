// SPDX-License-Identifier: Apache-2.0
#include "graph/parts.hpp"

namespace terrace {

std::vector<WholeTensor> whole_tensors(const Graph& graph) {
  std::vector<WholeTensor> wholes;
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    const Tensor& tensor = graph.tensors[i];
    if (!tensor.persistent) continue;
    if (!tensor.part_of) {
      wholes.push_back({tensor.name, tensor.shape, {{i}}});
    } else if (tensor.part_of->first == 0) {
      Shape shape = tensor.shape;
      shape[0] = tensor.part_of->rows;
      wholes.push_back({tensor.part_of->name, shape, find_parts(graph, tensor.part_of->name)});
    }
  }
  return wholes;
}

std::vector<TensorId> find_parts(const Graph& graph, std::string_view name) {
  if (const TensorId whole = find_tensor(graph, name)) return {whole};
  std::vector<TensorId> parts;
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    const auto& part_of = graph.tensors[i].part_of;
    if (part_of && part_of->name == name) parts.push_back({i});
  }
  return parts;
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// Persistent tensors as users know them: those that a graph keeps in parts stand for one tensor, whose name
// is in files of weights and in what a trainer reads and writes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "terrace/graph.hpp"

namespace terrace {

struct WholeTensor {
  std::string name;
  Shape shape;
  std::vector<TensorId> parts;  ///< in the order of their rows; of a tensor that is not cut itself alone
};

/// All persistent tensors, in the graph's order. pre: the graph is valid
std::vector<WholeTensor> whole_tensors(const Graph& graph);

/// The tensor of that name, or the parts that are kept of it; empty where there is neither.
std::vector<TensorId> find_parts(const Graph& graph, std::string_view name);

}  // namespace terrace

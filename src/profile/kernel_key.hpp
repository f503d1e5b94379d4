// The key of a kernel: two kernels with the same key take the same time on the same computer.
#pragma once

#include <string>

#include "backends/backend.hpp"
#include "terrace/graph.hpp"

namespace terrace {

/// Operation, attributes, the shape, type, layout and stored bytes of every operand, which of them are the
/// same memory, workspace and implementation. Names and places in the graph are no part of it.
std::string kernel_key(const Backend& backend, const Graph& graph, const Kernel& kernel);

}  // namespace terrace

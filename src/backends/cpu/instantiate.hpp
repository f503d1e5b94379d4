// SPDX-License-Identifier: Apache-2.0
// Kernels of a lowered graph, ready to run.
#pragma once

#include <memory>
#include <vector>

#include "backends/backend.hpp"
#include "backends/cpu/recipe.hpp"
#include "terrace/graph.hpp"

namespace terrace::cpu {

/// All kernels of the graph, in its order. Primitives that are alike are shared. pre: `lower` made the graph,
/// for as many threads as OpenMP has now; passes may have reordered it since.
Kernels instantiate(const Graph& graph);
/// The first variant, in as much of its workspace as it needs.
std::unique_ptr<RunnableKernel> instantiate(const Graph& graph, const Kernel& kernel);

/// Returns what a kernel's operands look like to oneDNN.
Descs descs_of(const Graph& graph, const Kernel& kernel);

/// Copies a tensor that is persistent or a result between its own layout and the row-major one of its shape,
/// as PyTorch stores it.
void from_row_major(const Graph& graph, TensorId id, const std::byte* row_major, std::byte* stored);
void to_row_major(const Graph& graph, TensorId id, const std::byte* stored, std::byte* row_major);

}  // namespace terrace::cpu

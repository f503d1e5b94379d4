// What persistent tensors hold before the first step.
#pragma once

#include "exec/store.hpp"

namespace terrace {

/// Values follow from the seed and the order of the weights alone: layouts, places and parts change nothing.
void initialise(const Graph& graph, std::uint64_t seed, const Store& store);

/// Whether the tensor outlives steps without being state of training: its values follow from the graph, as
/// positions do.
bool is_constant(const Tensor& tensor);
/// Sets the constants, and nothing else.
void initialise_constants(const Graph& graph, const Store& store);

}  // namespace terrace

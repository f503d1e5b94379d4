// What persistent tensors hold before the first step.
#pragma once

#include "exec/store.hpp"

namespace terrace {

/// Values follow from the seed and the order of the weights alone: layouts, places and parts change nothing.
void initialise(const Graph& graph, std::uint64_t seed, const Store& store);

/// Outlives steps and is no state of training: it follows from the graph, as positions do.
bool is_constant(const Tensor& tensor);
/// Those alone.
void initialise_constants(const Graph& graph, const Store& store);

}  // namespace terrace

// What persistent tensors hold before the first step.
#pragma once

#include "exec/store.hpp"

namespace terrace {

/// Values follow from the seed and the order of the weights alone: layouts, places and parts change nothing.
void initialise(const Graph& graph, std::uint64_t seed, const Store& store);

}  // namespace terrace

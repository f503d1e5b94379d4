// Makes the graph in which some kernels are split.
#pragma once

#include "nn/split_borders.hpp"

namespace terrace {

struct Cut {
  CutGroup group;
  Borders borders;
};

/// Tensors stay in their order, parts where the whole was; what is made anew follows. pre: the groups can be
/// split and have no kernel in common
Graph rewritten(const Graph& graph, const std::vector<Cut>& cuts);

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// Insertion keeps links in all directions, not links to all nodes: shrinking may drop the only way to one. A
// search would never find it. This adds the missing ways.
#pragma once

#include <vector>

#include "ann/graph.hpp"

namespace terrace::ann {

/// Adds links, in free places alone, until every node of the layer can be reached from node 0, as far as
/// there are free places. Returns how many it added.
std::uint64_t connect_all(const LayerSize& size, std::vector<std::uint32_t>& links, const Rows& rows,
                          const std::vector<std::uint32_t>& order);

}  // namespace terrace::ann

// How a numa tier is laid out over its nodes: runs of pages in turn, in proportion to the weights.
#pragma once

#include <vector>

#include "terrace/tier_spec.hpp"

namespace terrace {

struct NodeRun {
  unsigned node = 0;
  std::uint64_t offset = 0;
  Bytes bytes;
};

/// Covers `size` without gaps, each node in turn with its weight in slices. The slices are as small as a page
/// and grow with the size, because the kernel keeps a record for each run and allows only so many.
/// pre: size is a multiple of `page`; nodes are not empty, weights not zero.
std::vector<NodeRun> node_runs(Bytes size, const std::vector<NodeWeight>& nodes, Bytes page);

/// What one node holds of them.
Bytes share_of(unsigned node, const std::vector<NodeRun>& runs);

}  // namespace terrace

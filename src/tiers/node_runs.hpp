// A numa tier is laid out over its nodes in runs of pages, in turn and in proportion to the weights.
#pragma once

#include <vector>

#include "terrace/tier_spec.hpp"

namespace terrace {

struct NodeRun {
  unsigned node = 0;
  std::uint64_t offset = 0;
  Bytes bytes;
};

/// Covers `size` without gaps; each node in turn gets as many slices as its weight. A slice is at least a
/// page and grows with the size, because the kernel keeps a record for each run and limits their number. pre:
/// size is a multiple of `page`; nodes are not empty, weights not zero.
std::vector<NodeRun> node_runs(Bytes size, const std::vector<NodeWeight>& nodes, Bytes page);

/// Returns the bytes of the runs on one node.
Bytes share_of(unsigned node, const std::vector<NodeRun>& runs);

}  // namespace terrace

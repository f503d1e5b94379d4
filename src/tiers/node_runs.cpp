// SPDX-License-Identifier: Apache-2.0
#include "tiers/node_runs.hpp"

#include <algorithm>

namespace terrace {

std::vector<NodeRun> node_runs(Bytes size, const std::vector<NodeWeight>& nodes, Bytes page) {
  if (nodes.size() == 1) return {{nodes.front().node, 0, size}};
  constexpr std::uint64_t kRounds = 1024;
  std::uint64_t weights = 0;
  for (const NodeWeight& entry : nodes) weights += entry.weight;
  const Bytes slice = std::max(page, round_up(size / (kRounds * weights), page));
  std::vector<NodeRun> runs;
  for (Bytes at; at < size;) {
    for (const NodeWeight& entry : nodes) {
      const Bytes length = std::min(slice * entry.weight, size - at);
      if (length.count > 0) runs.push_back({entry.node, at.count, length});
      at += length;
    }
  }
  return runs;
}

Bytes share_of(unsigned node, const std::vector<NodeRun>& runs) {
  Bytes sum;
  for (const NodeRun& run : runs) {
    if (run.node == node) sum += run.bytes;
  }
  return sum;
}

}  // namespace terrace

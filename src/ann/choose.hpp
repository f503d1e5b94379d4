// SPDX-License-Identifier: Apache-2.0
// Which of its candidates a node is linked to: HNSW's heuristic. Plain functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace terrace::ann {

struct Link {
  std::uint32_t node;
  float distance;  ///< from the node that has the link

  /// Ties go to the smaller number.
  bool nearer_than(const Link& other) const {
    return distance < other.distance || (distance == other.distance && node < other.node);
  }
};

inline void sort_links(std::vector<Link>& links) {
  std::sort(links.begin(), links.end(), [](const Link& a, const Link& b) { return a.nearer_than(b); });
}

/// Keeps those that are nearer to the node than to any kept before them: links in all directions rather than
/// many into the same crowd. `between` tells the distance of two nodes; `kept` is scratch.
template <class Between>
void choose_links(std::vector<Link>& sorted, std::size_t most, std::vector<Link>& kept, Between between) {
  kept.clear();
  for (const Link& one : sorted) {
    if (kept.size() == most) break;
    const bool covered = std::any_of(kept.begin(), kept.end(), [&](const Link& other) {
      return between(one.node, other.node) < one.distance;
    });
    if (!covered) kept.push_back(one);
  }
  sorted.swap(kept);
}

}  // namespace terrace::ann

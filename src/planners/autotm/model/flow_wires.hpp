// SPDX-License-Identifier: Apache-2.0
// A flow graph under construction: a node is a state of the tensor at a point in time, edges connect them.
#pragma once

#include <array>

#include "planners/autotm/model/flow.hpp"

namespace terrace::autotm {

/// The fastest level a tensor lies in, and a slower one with the same contents. Both are equal where there is
/// no copy.
struct State {
  std::uint32_t level, copy;
  bool has_copy() const { return copy != level; }
};
constexpr State kStates[] = {{0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 2}};

/// The nodes of a point in time, by state; kNone where the tensor is never in that state then.
class Point {
 public:
  Point() { nodes_.fill(kNone); }
  std::uint32_t& operator[](State state) { return nodes_[state.level * kMostTiers + state.copy]; }
  std::uint32_t operator[](State state) const { return nodes_[state.level * kMostTiers + state.copy]; }

 private:
  std::array<std::uint32_t, kMostTiers * kMostTiers> nodes_;
};

class FlowWires {
 public:
  /// Begins a new point: nodes that are added from here on are later than all before.
  void next_point() { layer_ += 2; }
  /// Adds an edge that takes memory of a pool at these moments, to a new node between two points. Returns the
  /// node.
  std::uint32_t take(std::uint32_t from, TierId pool, std::uint32_t first, std::uint32_t last);
  /// Adds an edge to a node of the point, and the node where it is kNone. The reference is valid until the
  /// next edge is added.
  Edge& connect(std::uint32_t from, std::uint32_t& to);
  /// Marks a node where paths may end.
  void end(std::uint32_t node) { final_.push_back(node); }
  /// Removes nodes from which no path ends, and numbers the others so that edges lead to higher numbers.
  void finish(FlowGraph& graph);

 private:
  std::uint32_t add_node(std::uint32_t rank);

  std::vector<Edge> edges_;
  std::uint32_t layer_ = 1;
  std::vector<std::uint32_t> rank_{0};  ///< by node: edges lead to higher ranks, or to later nodes
  std::vector<std::uint32_t> final_;
};

}  // namespace terrace::autotm

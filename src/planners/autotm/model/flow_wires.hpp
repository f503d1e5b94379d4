// A flow graph being wired: nodes by the state a tensor is in at a place in time, and edges between them.
#pragma once

#include <array>

#include "planners/autotm/model/flow.hpp"

namespace terrace::autotm {

/// The fastest level a tensor lies in, and a slower one with the same contents; twice the same: no other.
struct State {
  std::uint32_t level, copy;
  bool has_copy() const { return copy != level; }
};
constexpr State kStates[] = {{0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 2}};

/// The nodes of a place in time, by state; kNone: the tensor is never in it there.
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
  /// What is made from here on is of a later point than all before.
  void next_point() { layer_ += 2; }
  /// To a node on the way to the point: takes memory of a pool at these moments. Returns the node.
  std::uint32_t take(std::uint32_t from, TierId pool, std::uint32_t first, std::uint32_t last);
  /// To a node of the point, which is made where it is kNone. The reference holds until the next edge.
  Edge& connect(std::uint32_t from, std::uint32_t& to);
  /// Paths end here, too.
  void end(std::uint32_t node) { final_.push_back(node); }
  /// Leaves out what leads nowhere, and numbers nodes along all paths.
  void finish(FlowGraph& graph);

 private:
  std::uint32_t add_node(std::uint32_t rank);

  std::vector<Edge> edges_;
  std::uint32_t layer_ = 1;
  std::vector<std::uint32_t> rank_{0};  ///< by node: all edges lead to higher ones, or to later nodes
  std::vector<std::uint32_t> final_;
};

}  // namespace terrace::autotm

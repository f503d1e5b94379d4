#include "planners/autotm/model/flow_wires.hpp"

#include <algorithm>
#include <numeric>

namespace terrace::autotm {

std::uint32_t FlowWires::add_node(std::uint32_t rank) {
  rank_.push_back(rank);
  return static_cast<std::uint32_t>(rank_.size()) - 1;
}

std::uint32_t FlowWires::take(std::uint32_t from, TierId pool, std::uint32_t first, std::uint32_t last) {
  Edge edge;
  edge.from = from;
  edge.to = add_node(layer_);
  edge.pool = pool;
  edge.first = first;
  edge.last = last;
  edges_.push_back(edge);
  return edge.to;
}

Edge& FlowWires::connect(std::uint32_t from, std::uint32_t& to) {
  if (to == kNone) to = add_node(layer_ + 1);
  Edge edge;
  edge.from = from;
  edge.to = to;
  return edges_.emplace_back(edge);
}

void FlowWires::finish(FlowGraph& graph) {
  std::vector<std::uint32_t> order(rank_.size()), number(rank_.size());
  const auto renumber = [&] {
    for (Edge& edge : edges_) {
      edge.from = number[edge.from];
      edge.to = number[edge.to];
    }
  };
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return rank_[a] < rank_[b]; });
  for (std::uint32_t i = 0; i < order.size(); ++i) number[order[i]] = i;
  renumber();
  std::vector<bool> lives(rank_.size());
  for (const std::uint32_t node : final_) lives[number[node]] = true;
  std::stable_sort(edges_.begin(), edges_.end(),
                   [](const Edge& a, const Edge& b) { return a.from < b.from; });
  for (auto edge = edges_.rbegin(); edge != edges_.rend(); ++edge) {
    if (lives[edge->to]) lives[edge->from] = true;
  }
  std::erase_if(edges_, [&](const Edge& edge) { return !lives[edge.to]; });
  graph.nodes = 0;
  for (std::size_t i = 0; i < number.size(); ++i) {
    number[i] = graph.nodes;
    if (lives[i]) ++graph.nodes;
  }
  renumber();
  graph.edges.assign(edges_.begin(), edges_.end());  // no larger than it has to be
}

}  // namespace terrace::autotm

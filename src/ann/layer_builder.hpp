// SPDX-License-Identifier: Apache-2.0
// Inserts nodes one by one into the layers they belong to: HNSW's insertion, and lines 7 to 19 of HM-ANN's
// Algorithm 1, which are the same but for the order and the sizes. One thread at a time.
#pragma once

#include <vector>

#include "ann/choose.hpp"
#include "ann/graph.hpp"
#include "ann/huge_memory.hpp"
#include "ann/pool.hpp"
#include "ann/visited.hpp"

namespace terrace::ann {

struct BuiltLayer {
  std::uint64_t nodes = 0;
  std::uint32_t links = 0;   ///< most that a node has
  std::uint32_t chosen = 0;  ///< most that it is given when it is inserted
};

class LayerBuilder {
 public:
  /// `layers`, the lowest first; `order` says the row of each node. Both are borrowed as long as it builds.
  LayerBuilder(const Rows& rows, const std::vector<std::uint32_t>& order, std::vector<BuiltLayer> layers,
               std::uint32_t ef_construction);

  /// pre: nodes come in ascending order from 0
  void insert(std::uint32_t node);
  /// The links of each layer, as Graph has them. Call once.
  std::vector<std::vector<std::uint32_t>> take_links();

 private:
  struct Layer {
    BuiltLayer size;
    HugeVector<std::uint32_t> links;  // nodes x size.links
    HugeVector<float> distances;      // of each link, which shrinking needs and walking does not
    std::vector<std::uint16_t> counts;

    std::size_t place(std::uint32_t node) const { return std::size_t{node} * size.links; }
  };

  const float* vector_of(std::uint32_t node) const { return rows_.row(order_[node]); }
  float distance(const float* a, std::uint32_t b) const {
    return rows_.distance(a, vector_of(b), rows_.dimension);
  }
  void descend(const float* query, const Layer& layer, Link& nearest);
  void search(const float* query, const Layer& layer, Link entry);
  void expand(const float* query, const Layer& layer, std::uint32_t node);
  void choose(std::vector<Link>& sorted, std::size_t most);
  void connect(Layer& layer, std::uint32_t node);
  void add_link(Layer& layer, std::uint32_t from, Link link);
  static void write_links(Layer& layer, std::uint32_t node, const std::vector<Link>& links);

  const Rows rows_;
  const std::vector<std::uint32_t>& order_;
  const std::uint32_t ef_construction_;
  std::vector<Layer> layers_;
  Visited visited_;
  Pool pool_;
  std::vector<std::uint32_t> fresh_;
  std::vector<Link> chosen_, shrunk_, kept_;
};

}  // namespace terrace::ann

// SPDX-License-Identifier: Apache-2.0
// The graph of an index, and building it: HNSW, then HM-ANN's promotion (002 Algorithm 1).
//
//   node     a vector in the graph; its number is not its id: `order` says which row of the vectors it is
//   layer    layer i holds the nodes 0 to N_i - 1: nodes are numbered so that higher layers are prefixes of
//            lower ones, which spares every layer a table of its members
//   links    of a node in a layer: up to M_i other nodes of it; unused places hold kNoLink and come last
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ann/metric.hpp"

namespace terrace::ann {

inline constexpr std::uint32_t kNoLink = 0xFFFFFFFF;

struct LayerSize {
  std::uint64_t nodes = 0;
  std::uint32_t links = 0;
  bool operator==(const LayerSize&) const = default;
};

struct Graph {
  std::vector<LayerSize> layers;                  ///< the lowest first
  std::vector<std::uint32_t> order;               ///< of each node: its row
  std::vector<std::vector<std::uint32_t>> links;  ///< by layer: nodes x links
};

/// Rows of floats, ready for the distance (prepare.hpp). Borrowed.
struct Rows {
  const float* values = nullptr;
  std::size_t dimension = 0;
  std::size_t count = 0;
  DistanceFunction distance = nullptr;
  const std::uint32_t* ids = nullptr;  ///< of each row
  Metric metric = Metric::l2;          ///< whose the distance is

  const float* row(std::uint32_t number) const { return values + std::size_t{number} * dimension; }
};

struct HnswOptions {
  std::uint32_t links = 16;  ///< M: half of what a node has in the lowest layer
  std::uint32_t ef_construction = 100;
  std::uint64_t seed = 1;
  std::function<void(double)> progress = {};  ///< called with the share done, now and then
};

/// Layer i + 1 has one in M of the nodes of layer i, chosen at random. The same graph for the same seed.
/// pre: links >= 2, ef_construction >= 1
Graph build_hnsw(const Rows& rows, const HnswOptions& options);

/// Of each node of the lowest layer, with how many others it has a link in either direction.
std::vector<std::uint32_t> undirected_degrees(const Graph& graph);

enum class PromotionOrder : std::uint8_t { degree, random };

/// Algorithm 1 from line 2 on: keeps the lowest layer, and rebuilds those above from the `promoted` nodes
/// that come first in the order; layer 1 has 2M links, each higher layer a share of 1/M of the nodes and M
/// links. Renumbers all nodes. pre: 1 <= promoted <= nodes
Graph promote(Graph graph, const Rows& rows, std::uint64_t promoted, PromotionOrder order,
              const HnswOptions& options);

/// Its lines 7 to 19: the links of layers 1 and up, for nodes that `order` begins with. pre: two layers or
/// more
std::vector<std::vector<std::uint32_t>> build_upper_layers(const Rows& rows,
                                                           const std::vector<std::uint32_t>& order,
                                                           const std::vector<LayerSize>& layers,
                                                           const HnswOptions& options);

/// Sizes of the layers that promote() makes.
std::vector<LayerSize> promoted_layers(std::uint64_t nodes, std::uint64_t promoted, std::uint32_t links);

/// New numbers for nodes from `first` on, so that neighbours stand side by side in groups of `group`; those
/// before keep theirs. `links` has `width` places for each node.
std::vector<std::uint32_t> grouped_numbers(std::span<const std::uint32_t> links, std::size_t width,
                                           std::uint32_t nodes, std::uint32_t first, std::uint64_t group);

/// Renumbers the nodes that are in the lowest layer alone, so that neighbours stand side by side in groups of
/// `group`: what one read of a disk brings then serves several steps of a search.
void pack_neighbours(Graph& graph, std::uint64_t group);

}  // namespace terrace::ann

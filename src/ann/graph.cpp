// SPDX-License-Identifier: Apache-2.0
#include "ann/graph.hpp"

#include <algorithm>
#include <numeric>

#include "ann/layer_builder.hpp"
#include "base/check.hpp"
#include "base/random.hpp"

namespace terrace::ann {
namespace {

constexpr std::uint64_t kProgressSteps = 200;

std::vector<std::uint32_t> shuffled(std::size_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  SplitMix random(seed);
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

/// Calls `progress` so often that a person sees it move.
void insert_all(LayerBuilder& builder, std::uint64_t nodes, const HnswOptions& options) {
  for (std::uint64_t node = 0; node < nodes; ++node) {
    builder.insert(static_cast<std::uint32_t>(node));
    const bool due = node % (nodes / kProgressSteps + 1) == 0;
    if (due && options.progress) options.progress(static_cast<double>(node) / static_cast<double>(nodes));
  }
}

/// The graph with node n called `number[n]`. Layers above the lowest are left alone.
void renumber_lowest(Graph& graph, const std::vector<std::uint32_t>& number) {
  const std::size_t width = graph.layers[0].links;
  std::vector<std::uint32_t> links(graph.links[0].size()), order(graph.order.size());
  for (std::size_t node = 0; node < order.size(); ++node) {
    order[number[node]] = graph.order[node];
    for (std::size_t i = 0; i < width; ++i) {
      const std::uint32_t link = graph.links[0][node * width + i];
      links[number[node] * width + i] = link == kNoLink ? kNoLink : number[link];
    }
  }
  graph.links[0].swap(links);
  graph.order.swap(order);
}

std::vector<std::uint32_t> inverse(const std::vector<std::uint32_t>& order) {
  std::vector<std::uint32_t> number(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) number[order[i]] = static_cast<std::uint32_t>(i);
  return number;
}

}  // namespace

Graph build_hnsw(const Rows& rows, const HnswOptions& options) {
  check(options.links >= 2 && options.ef_construction >= 1, "a graph has at least two links for each node");
  check(rows.count < kNoLink, "nodes have numbers of 32 bits");
  Graph graph;
  graph.order = shuffled(rows.count, options.seed);
  std::vector<BuiltLayer> built;
  for (std::uint64_t nodes = rows.count; nodes > 0; nodes /= options.links) {
    const std::uint32_t links = built.empty() ? 2 * options.links : options.links;
    built.push_back({nodes, links, options.links});
    graph.layers.push_back({nodes, links});
  }
  LayerBuilder builder(rows, graph.order, built, options.ef_construction);
  insert_all(builder, rows.count, options);
  graph.links = builder.take_links();
  return graph;
}

std::vector<std::uint32_t> undirected_degrees(const Graph& graph) {
  std::vector<std::uint32_t> degrees(graph.order.size(), 0);
  if (degrees.empty()) return degrees;
  const std::size_t width = graph.layers[0].links;
  const auto links_of = [&](std::uint32_t node) {
    const auto* first = graph.links[0].data() + node * width;
    return std::span(first, static_cast<std::size_t>(std::find(first, first + width, kNoLink) - first));
  };
  for (std::uint32_t node = 0; node < degrees.size(); ++node) {
    for (const std::uint32_t other : links_of(node)) {
      ++degrees[node];
      // A link that is answered is counted when the other's turn comes.
      const auto back = links_of(other);
      if (std::find(back.begin(), back.end(), node) == back.end()) ++degrees[other];
    }
  }
  return degrees;
}

std::vector<LayerSize> promoted_layers(std::uint64_t nodes, std::uint64_t promoted, std::uint32_t links) {
  std::vector<LayerSize> layers{{nodes, 2 * links}};
  for (std::uint64_t count = promoted; count > 0; count /= links)
    layers.push_back({count, layers.size() == 1 ? 2 * links : links});
  return layers;
}

Graph promote(Graph graph, const Rows& rows, std::uint64_t promoted, PromotionOrder order,
              const HnswOptions& options) {
  check(promoted >= 1 && promoted <= graph.order.size(), "some of the nodes are promoted");
  if (order == PromotionOrder::degree) {
    const auto degrees = undirected_degrees(graph);
    std::vector<std::uint32_t> by_degree(degrees.size());
    std::iota(by_degree.begin(), by_degree.end(), 0U);
    std::stable_sort(by_degree.begin(), by_degree.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return degrees[a] > degrees[b]; });
    renumber_lowest(graph, inverse(by_degree));
  }
  graph.layers = promoted_layers(graph.order.size(), promoted, options.links);
  graph.links.resize(1);
  for (auto& links : build_upper_layers(rows, graph.order, graph.layers, options))
    graph.links.push_back(std::move(links));
  return graph;
}

std::vector<std::vector<std::uint32_t>> build_upper_layers(const Rows& rows,
                                                           const std::vector<std::uint32_t>& order,
                                                           const std::vector<LayerSize>& layers,
                                                           const HnswOptions& options) {
  std::vector<BuiltLayer> built;
  for (const LayerSize& layer : std::span(layers).subspan(1))
    built.push_back({layer.nodes, layer.links, layer.links});
  LayerBuilder builder(rows, order, built, options.ef_construction);
  insert_all(builder, layers[1].nodes, options);
  return builder.take_links();
}

std::vector<std::uint32_t> grouped_numbers(std::span<const std::uint32_t> links, std::size_t width,
                                           std::uint32_t nodes, std::uint32_t first, std::uint64_t group) {
  std::vector<std::uint32_t> number(nodes, kNoLink);
  std::iota(number.begin(), number.begin() + first, 0U);
  std::uint32_t next = first;
  std::vector<std::uint32_t> together;
  for (std::uint32_t seed = first; seed < nodes; ++seed) {
    if (number[seed] != kNoLink) continue;
    // A group grows along the links of its members, in the order in which they joined.
    together.assign(1, seed);
    number[seed] = next++;
    for (std::size_t at = 0; at < together.size() && together.size() < group; ++at) {
      for (std::size_t i = 0; i < width && together.size() < group; ++i) {
        const std::uint32_t link = links[together[at] * width + i];
        if (link == kNoLink) break;
        if (number[link] != kNoLink) continue;
        number[link] = next++;
        together.push_back(link);
      }
    }
  }
  return number;
}

void pack_neighbours(Graph& graph, std::uint64_t group) {
  if (graph.layers.size() < 2 || group < 2) return;
  renumber_lowest(graph, grouped_numbers(graph.links[0], graph.layers[0].links,
                                         static_cast<std::uint32_t>(graph.order.size()),
                                         static_cast<std::uint32_t>(graph.layers[1].nodes), group));
}

}  // namespace terrace::ann

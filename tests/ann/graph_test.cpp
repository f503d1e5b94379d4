// SPDX-License-Identifier: Apache-2.0
#include "ann/graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ann/layout.hpp"
#include "ann/made_vectors.hpp"

namespace terrace::ann {
namespace {

Rows rows_of(const Vectors& vectors) {
  return {vectors.values.data(), vectors.dimension, vectors.count(), distance_function(Metric::l2)};
}

HnswOptions options(std::uint32_t links = 6) { return {links, 40, 3, {}}; }

/// How many nodes of the layer a walk from node 0 meets.
std::size_t reachable(const Graph& graph, std::size_t layer) {
  std::set<std::uint32_t> met{0};
  std::vector<std::uint32_t> open{0};
  while (!open.empty()) {
    const std::size_t at = std::size_t{open.back()} * graph.layers[layer].links;
    open.pop_back();
    for (std::size_t i = 0; i < graph.layers[layer].links; ++i) {
      const std::uint32_t link = graph.links[layer][at + i];
      if (link != kNoLink && met.insert(link).second) open.push_back(link);
    }
  }
  return met.size();
}

/// Every rule that a graph keeps, whatever it was built from.
void expect_sound(const Graph& graph, std::size_t count) {
  ASSERT_EQ(graph.layers.size(), graph.links.size());
  ASSERT_EQ(graph.layers[0].nodes, count);
  ASSERT_EQ(std::set(graph.order.begin(), graph.order.end()).size(), count);
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    const LayerSize& layer = graph.layers[i];
    ASSERT_EQ(graph.links[i].size(), layer.nodes * layer.links);
    EXPECT_EQ(reachable(graph, i), layer.nodes) << "layer " << i;
    if (i > 0) {
      ASSERT_LE(layer.nodes, graph.layers[i - 1].nodes);
    }
    for (std::size_t node = 0; node < layer.nodes; ++node) {
      const auto* first = graph.links[i].data() + node * layer.links;
      const auto* end = std::find(first, first + layer.links, kNoLink);
      ASSERT_TRUE(std::all_of(end, first + layer.links, [](auto link) { return link == kNoLink; }));
      ASSERT_TRUE(std::all_of(first, end, [&](auto link) { return link < layer.nodes && link != node; }));
      ASSERT_EQ(std::set(first, end).size(), static_cast<std::size_t>(end - first)) << "a link comes twice";
    }
  }
}

TEST(Hnsw, KeepsTheRulesOfItsLayers) {
  const Vectors vectors = generate(mixture(2000, 12));
  const Graph graph = build_hnsw(rows_of(vectors), options());
  expect_sound(graph, 2000);
  const std::vector<LayerSize> sizes{{2000, 12}, {333, 6}, {55, 6}, {9, 6}, {1, 6}};
  EXPECT_EQ(graph.layers, sizes);
}

TEST(Hnsw, LeadsToEveryNodeOfFarApartClusters) {
  // Within clusters of ten all are about as far from each other as from anything else.
  const Vectors vectors = generate(mixture(300, 1024));
  expect_sound(build_hnsw(rows_of(vectors), options(4)), 300);
  Vectors line{1, {}};
  for (int i = 0; i < 400; ++i) line.values.push_back(static_cast<float>(i < 200 ? i : 1e6 + i));
  expect_sound(build_hnsw(rows_of(line), options(2)), 400);
}

TEST(Hnsw, IsTheSameForOneSeed) {
  const Vectors vectors = generate(mixture(500, 12));
  EXPECT_EQ(build_hnsw(rows_of(vectors), options()).links, build_hnsw(rows_of(vectors), options()).links);
  HnswOptions other = options();
  other.seed = 4;
  EXPECT_NE(build_hnsw(rows_of(vectors), options()).links, build_hnsw(rows_of(vectors), other).links);
}

TEST(Degrees, CountLinksOfEitherDirectionOnce) {
  Graph graph;
  graph.layers = {{4, 2}};
  graph.order = {0, 1, 2, 3};
  graph.links = {{1, 2, 0, kNoLink, 3, kNoLink, kNoLink, kNoLink}};  // 0>1 0>2 1>0 2>3
  const std::vector<std::uint32_t> expected{2, 1, 2, 1};
  EXPECT_EQ(undirected_degrees(graph), expected);
}

/// Rows with their links as rows, which renumbering leaves alone.
std::vector<std::vector<std::uint32_t>> lowest_by_row(const Graph& graph) {
  std::vector<std::vector<std::uint32_t>> rows(graph.order.size());
  for (std::size_t node = 0; node < rows.size(); ++node) {
    for (std::size_t i = 0; i < graph.layers[0].links; ++i) {
      const std::uint32_t link = graph.links[0][node * graph.layers[0].links + i];
      if (link != kNoLink) rows[graph.order[node]].push_back(graph.order[link]);
    }
  }
  return rows;
}

TEST(Promotion, TakesTheNodesOfHighestDegreeAndKeepsTheLowestLayer) {
  const Vectors vectors = generate(mixture(1500, 12, 1));
  const Graph before = build_hnsw(rows_of(vectors), options());
  const Graph after = promote(before, rows_of(vectors), 400, PromotionOrder::degree, options());
  expect_sound(after, 1500);
  const std::vector<LayerSize> sizes{{1500, 12}, {400, 12}, {66, 6}, {11, 6}, {1, 6}};
  EXPECT_EQ(after.layers, sizes);
  EXPECT_EQ(lowest_by_row(before), lowest_by_row(after));
  const auto degrees = undirected_degrees(after);
  EXPECT_TRUE(std::is_sorted(degrees.rbegin(), degrees.rend()));
  EXPECT_GT(degrees.front(), degrees.back()) << "the data has hubs";
}

TEST(Promotion, AtRandomIsNotByDegree) {
  const Vectors vectors = generate(mixture(1500, 12, 1));
  const Graph graph = promote(build_hnsw(rows_of(vectors), options()), rows_of(vectors), 400,
                              PromotionOrder::random, options());
  expect_sound(graph, 1500);
  const auto degrees = undirected_degrees(graph);
  EXPECT_FALSE(std::is_sorted(degrees.rbegin(), degrees.rend()));
}

TEST(Packing, BringsNeighboursTogether) {
  const Vectors vectors = generate(mixture(3000, 12));
  Graph graph = promote(build_hnsw(rows_of(vectors), options()), rows_of(vectors), 300,
                        PromotionOrder::degree, options());
  const auto together = [&](const Graph& one) {
    std::size_t count = 0;
    for (std::size_t node = 300; node < 3000; ++node)
      for (std::size_t i = 0; i < 12; ++i) {
        const std::uint32_t link = one.links[0][node * 12 + i];
        count += link != kNoLink && link >= 300 && (link - 300) / 6 == (node - 300) / 6;
      }
    return count;
  };
  const std::size_t before = together(graph);
  const auto rows = lowest_by_row(graph);
  pack_neighbours(graph, 6);
  expect_sound(graph, 3000);
  EXPECT_EQ(lowest_by_row(graph), rows);
  EXPECT_GT(together(graph), 20 * std::max<std::size_t>(before, 1));
}

TEST(Size, IsThatOfTheEquationsToTheByte) {
  const auto layers = promoted_layers(1000, 160, 4);
  const std::vector<LayerSize> expected{{1000, 8}, {160, 8}, {40, 4}, {10, 4}, {2, 4}};
  ASSERT_EQ(layers, expected);
  const PartSize fast = fast_size(layers, 128), slow = slow_size(layers, 128);
  EXPECT_EQ(fast.links.count, (160 * 8 + 40 * 4 + 10 * 4 + 2 * 4) * 4U);
  EXPECT_EQ(fast.elements.count, 160 * 512U);
  EXPECT_EQ(slow.links.count, 1000 * 8 * 4U);
  EXPECT_EQ(slow.elements.count, 840 * 512U);
  EXPECT_EQ(SlowLayout(layers, 128, false).total(), slow.total());
}

TEST(Size, OfThePaperIsNearItsTable) {
  // BIGANN as bytes has 128 of them a vector, a quarter of our floats: 32 floats are as large.
  const auto layers = promoted_layers(1'000'000'000, 160'000'000, 48);
  EXPECT_NEAR(
      static_cast<double>(fast_size(layers, 32).elements.count + fast_size(layers, 32).links.count) / 1e9, 83,
      1);
  const PartSize slow = slow_size(layers, 32);
  EXPECT_NEAR(static_cast<double>(slow.elements.count + slow.links.count) / 1e9, 492, 1);
}

TEST(Size, AllowsAsManyPromotedNodesAsFitAndNoMore) {
  for (const std::uint64_t fast : {0U, 700U, 2000U, 50'000U, 300'000U, 100'000'000U}) {
    const std::uint64_t promoted = most_promoted(1000, 4, 128, 0, Bytes{fast});
    EXPECT_LE(fast_size(promoted_layers(1000, promoted, 4), 128).total().count, fast);
    if (promoted < 1000) {
      EXPECT_GT(fast_size(promoted_layers(1000, promoted + 1, 4), 128).total().count, fast);
    }
  }
  EXPECT_EQ(most_promoted(1000, 4, 128, 0, Bytes{100'000'000}), 1000U);
}

TEST(Layout, OfADiskLetsNothingCrossAUnit) {
  for (const std::size_t dimension : {1U, 128U, 900U, 1100U, 4096U, 9000U}) {
    const ElementType type = dimension == 9000 || dimension == 1 ? ElementType::u8 : ElementType::f32;
    const SlowLayout layout(promoted_layers(1000, 160, 4), dimension, true, type);
    std::uint64_t end = 0;
    for (std::uint32_t node = 0; node < 1000; ++node) {
      const std::uint64_t place = layout.place(node);
      const std::uint64_t size = (node < 160 ? layout.list_bytes() : layout.record_bytes()).count;
      ASSERT_GE(place, end) << "overlaps the node before it";
      ASSERT_EQ(place / layout.unit().count, (place + size - 1) / layout.unit().count);
      end = place + size;
    }
    EXPECT_LE(end, layout.total().count);
    EXPECT_EQ(layout.total() % layout.unit(), Bytes{0});
  }
}

}  // namespace
}  // namespace terrace::ann

// SPDX-License-Identifier: Apache-2.0
// Tensors that are kept in parts: which of them make a whole, in graphs and in their files.
#include <gtest/gtest.h>

#include <functional>

#include "split/nets.hpp"
#include "terrace/graph_json.hpp"

namespace terrace {
namespace {

/// The parts of `first.weight` are tensors 1 and up.
Graph in_parts() { return test::split(test::classifier(300, 131), 40); }

std::vector<TensorId> weights(const Graph& graph) { return find_parts(graph, "first.weight"); }

/// Why the altered graph is none.
std::string refusal(const std::function<void(Graph&, Tensor&)>& alter) {
  Graph graph = in_parts();
  alter(graph, graph[weights(graph)[1]]);
  const auto valid = validate(graph);
  return valid.ok() ? "accepted" : valid.error().message;
}

TEST(Parts, AreRefusedWhereTheyMakeNoWhole) {
  ASSERT_GT(weights(in_parts()).size(), 2U);
  EXPECT_EQ(refusal([](Graph&, Tensor&) {}), "accepted");
  const auto expect = [](const std::string& part, const std::function<void(Graph&, Tensor&)>& alter) {
    EXPECT_NE(refusal(alter).find(part), std::string::npos) << refusal(alter);
  };
  expect("first.weight/1 has rows ", [](Graph&, Tensor& one) { ++one.part_of->first; });
  expect("first.weight/1 has rows ", [](Graph&, Tensor& one) { one.part_of->first = 0; });
  expect("first.weight/1 has rows ", [](Graph&, Tensor& one) { one.part_of->rows = 1; });
  expect("is not like first.weight/0", [](Graph&, Tensor& one) { one.part_of->rows = 1000; });
  expect("is not like first.weight/0", [](Graph&, Tensor& one) { one.initial.a = 7; });
  expect("is a part of a tensor without a name", [](Graph&, Tensor& one) { one.part_of->name.clear(); });
  expect("only what has rows and is persistent", [](Graph&, Tensor& one) { one.persistent = false; });
  expect("is the last part of first.weight, which has more rows", [](Graph& graph, Tensor&) {
    const TensorId last = weights(graph).back();
    graph[last].part_of.reset();
  });
  expect("first.weight is the name of a tensor and of parts",
         [](Graph& graph, Tensor&) { graph[find_tensor(graph, "middle.bias")].name = "first.weight"; });
}

TEST(Parts, GoThroughFilesOfGraphs) {
  const Graph graph = in_parts();
  const std::string text = to_json_text(graph);
  EXPECT_NE(text.find("\"part_of\":{"), std::string::npos);
  EXPECT_EQ(graph_from_json(text).value(), graph);
}

TEST(Parts, WholeTensorsAreTheSameHoweverTheyAreKept) {
  const Graph graph = test::classifier(300, 131), split = in_parts();
  const auto given = whole_tensors(graph), kept = whole_tensors(split);
  ASSERT_EQ(given.size(), kept.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    EXPECT_EQ(given[i].name, kept[i].name);
    EXPECT_EQ(given[i].shape, kept[i].shape);
    EXPECT_EQ(given[i].parts.size(), 1U);
  }
}

}  // namespace
}  // namespace terrace

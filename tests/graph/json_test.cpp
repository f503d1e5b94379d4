#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "graph/nets.hpp"
#include "nn/operation_table.hpp"
#include "support/random_graph.hpp"
#include "support/stress_factor.hpp"
#include "terrace/graph_json.hpp"
#include "terrace/lifetimes.hpp"

namespace terrace {
namespace {

Graph read(const std::string& text) { return graph_from_json(text).value(); }

std::string format_document() {
  std::ifstream file(TERRACE_TESTS "/../docs/formats/graph.md");
  EXPECT_TRUE(file) << "the document is beside the tests";
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const auto from = text.find(begin) + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

TEST(GraphJson, RoundTripsEveryNet) {
  for (const Graph& graph : all_nets()) EXPECT_EQ(read(to_json_text(graph)), graph) << graph.name;
}

TEST(GraphJson, RoundTripsRandomGraphs) {
  for (int seed = 0; seed < 100 * stress_factor(); ++seed) {
    const Graph graph = random_graph({.kernels = static_cast<std::uint32_t>(seed % 30)}, seed);
    EXPECT_EQ(read(to_json_text(graph)), graph) << seed;
  }
}

/// A value that differs from the default, and from one call to the next.
class Filler {
 public:
  void operator()(const char*, float& value) {
    value = std::ldexp(1 + random() / 3.0F, static_cast<int>(random() * 200) - 100);
  }
  void operator()(const char*, bool& value) { value = !value; }
  void operator()(const char*, std::int64_t& value) { value = static_cast<std::int64_t>(generator_() >> 1); }
  void operator()(const char*, std::uint32_t& value) { value = static_cast<std::uint32_t>(generator_()); }
  void operator()(const char* name, Window::Pair& value) {
    (*this)(name, value[0]);
    (*this)(name, value[1]);
  }

 private:
  float random() { return static_cast<float>(generator_() >> 40) / static_cast<float>(1 << 24); }
  std::mt19937_64 generator_{7};
};

std::size_t least_operands(std::string_view side) {
  std::size_t count = 0;
  while (!accepts(side, count)) ++count;
  return count;
}

/// One kernel of every operation, with unusual attributes.
Graph all_operations(Filler& fill) {
  Graph graph;
  graph.layers = {"all"};
  const auto operand = [&] {
    const TensorId id{static_cast<std::uint32_t>(graph.tensors.size())};
    Tensor tensor;
    tensor.name = "t" + std::to_string(id.index);
    tensor.shape = {1};
    tensor.bytes = Bytes{4};
    tensor.persistent = true;
    graph.tensors.push_back(tensor);
    return Operand{id, {1, 1}, Bytes{3}, {}};
  };
  for (std::size_t i = 0; i < kOperations; ++i) {
    Kernel kernel;
    kernel.name = "k";
    kernel.operation = to_string(static_cast<Operation>(i));
    const OperationInfo& signature = info_of(operation_of(kernel));
    for (std::size_t n = least_operands(signature.inputs); n-- > 0;) kernel.inputs.push_back(operand());
    for (std::size_t n = least_operands(signature.outputs); n-- > 0;) kernel.outputs.push_back(operand());
    OperationAttributes attributes = info_of(operation_of(kernel)).attributes;
    std::visit([&](auto& held) { for_each_field(held, std::ref(fill)); }, attributes);
    kernel.attributes = to_attributes(attributes);
    EXPECT_EQ(attributes_of(kernel), attributes);
    graph.kernels.push_back(kernel);
  }
  return graph;
}

TEST(GraphJson, RoundTripsEveryAttributeToTheBit) {
  Filler fill;
  for (int round = 0; round < 50; ++round) {
    const Graph graph = all_operations(fill);
    ASSERT_EQ(read(to_json_text(graph)), graph);
  }
}

TEST(GraphJson, RoundTripsEverythingAGraphCanHold) {
  Graph graph;
  graph.name = "all \"keys\" \u00e9 \n";
  graph.layers = {"a", "b", "a"};
  const auto tensor = [&](const std::string& name, TensorKind kind) -> Tensor& {
    graph.tensors.emplace_back();
    graph.tensors.back().name = name;
    graph.tensors.back().kind = kind;
    graph.tensors.back().shape = {2, 3};
    graph.tensors.back().bytes = Bytes{24};
    return graph.tensors.back();
  };
  tensor("in", TensorKind::input).initial = {Initial::Kind::uniform, -0.1F,
                                             std::numeric_limits<float>::max()};
  tensor("out", TensorKind::activation).layout = "aBcd16b";
  graph.tensors.back().bytes = Bytes{1U << 30U};
  graph.tensors.back().type = DataType::bf16;
  tensor("scratch", TensorKind::workspace);
  tensor("weight", TensorKind::weight);  // not persistent: unlike the default
  tensor("scalar", TensorKind::gradient).shape = {};
  tensor("empty", TensorKind::statistics).shape = {0, 7};
  Kernel kernel;
  kernel.name = "k";
  kernel.operation = "acme.\u00fcber";
  kernel.attributes = {{"sure", true},
                       {"count", std::int64_t{-3}},
                       {"share", 0.1},
                       {"whole", 3.0},
                       {"mode", std::string("\u00e9")},
                       {"sizes", std::vector<std::int64_t>{3, -1}},
                       {"none", std::vector<std::int64_t>{}}};
  kernel.inputs = {{{0}, {6}, Bytes{5}, "2x3:ba@1,2"}};
  kernel.outputs = {{{1}, {3, 2}, Bytes{}, {}}, {{3}, {2, 3}, Bytes{1}, {}}};
  kernel.workspace = {2};
  kernel.in_place = {{0, 1}, {0, 0}};
  kernel.flops = 0.1;
  kernel.layer = 2;
  kernel.phase = Phase::update;
  kernel.variants = {{"v", Bytes{9}, Seconds(1e-7)}, {"", {}, std::nullopt}};
  graph.kernels = {kernel};
  graph.results = {{1}, {0}, {1}};
  EXPECT_EQ(read(to_json_text(graph)), graph);
}

TEST(GraphJson, IsStable) {
  const std::string text = to_json_text(transformer());
  EXPECT_EQ(text, to_json_text(transformer()));
  EXPECT_EQ(to_json_text(read(text)), text);
}

TEST(GraphJson, WritesFloatsAsPeopleDo) {
  EXPECT_NE(to_json_text(residual()).find("\"epsilon\":1e-05"), std::string::npos);
}

TEST(GraphJson, KeepsForeignOperations) {
  const Graph graph =
      read(R"({"format": "terrace-graph", "version": 1, "tensors": [{"name": "x", "bytes": 5}],
    "kernels": [{"name": "k", "operation": "acme.make", "outputs": ["x"], "flops": 7,
                 "variants": [{"name": "fast", "time": 0.5, "workspace": 3}]}]})");
  const Kernel& kernel = graph.kernels[0];
  EXPECT_EQ(operation_of(kernel), Operation::custom);
  EXPECT_EQ(kernel.operation, "acme.make");
  EXPECT_EQ(kernel.flops, 7);
  EXPECT_EQ(kernel.outputs[0], (Operand{{0}, {5}, Bytes{5}, {}}));
  EXPECT_EQ(kernel.variants[0], (Variant{"fast", Bytes{3}, Seconds(0.5)}));
  EXPECT_NE(to_json_text(graph).find("acme.make"), std::string::npos);
}

TEST(GraphJson, FillsInDefaults) {
  const Graph graph = read(R"({"format": "terrace-graph", "version": 1,
    "tensors": [{"name": "w", "shape": [2, 3], "type": "bf16", "kind": "weight"}, {"name": "b", "bytes": 9},
                {"name": "s", "shape": []}],
    "kernels": [{"name": "k", "operation": "custom", "inputs": ["w"],
                 "outputs": ["b", {"tensor": "s"}]}]})");
  EXPECT_EQ(graph.name, "");
  EXPECT_EQ(graph.layers, std::vector<std::string>{"all"});
  EXPECT_TRUE(graph.tensors[0].persistent);
  EXPECT_EQ(graph.tensors[0].bytes, Bytes{12});
  EXPECT_FALSE(graph.tensors[1].persistent);
  EXPECT_EQ(graph.tensors[1].type, DataType::u8);
  EXPECT_EQ(graph.tensors[1].shape, Shape{9});
  EXPECT_EQ(graph.tensors[1].kind, TensorKind::activation);
  EXPECT_EQ(graph.tensors[2].bytes, Bytes{4});
  EXPECT_EQ(graph.kernels[0].inputs[0], (Operand{{0}, {2, 3}, Bytes{12}, {}}));
  EXPECT_EQ(graph.kernels[0].phase, Phase::forward);
  EXPECT_FALSE(graph.kernels[0].workspace);
}

TEST(GraphJson, WritesOnlyWhatIsValid) {
  Graph graph = mlp();
  graph.kernels[0].layer = 1000;
  EXPECT_THROW(to_json_text(graph), std::logic_error);
  graph = mlp();
  graph.tensors[0].name = "\xff";
  EXPECT_THROW(to_json_text(graph), std::logic_error);
}

TEST(GraphFormatDocument, ExampleIsAGraph) {
  const Graph graph = read(between(format_document(), "```json\n", "```"));
  EXPECT_EQ(graph.name, "by hand");
  EXPECT_EQ(graph.kernels.size(), 2U);
  EXPECT_EQ(graph.kernels[1].operation, "acme.zip");
  EXPECT_EQ(Lifetimes(graph).peak_bytes(), Bytes{8 * 784 * 4 + 10 * 784 * 4 + 8 * 10 * 4});
}

TEST(GraphFormatDocument, ListsTheOperandsOfEveryOperation) {
  const std::string text = format_document();
  const auto cell = [](std::string_view side) {
    std::string written;
    for (const char c : side) written += c == ' ' ? ", " : c == '*' ? "\\*" : std::string(1, c);
    return written;
  };
  for (std::size_t i = 0; i < kOperations; ++i) {
    const auto operation = static_cast<Operation>(i);
    const OperationInfo& signature = info_of(operation);
    const std::string row = "| `" + std::string(to_string(operation)) + "` | " + cell(signature.inputs) +
                            " | " + cell(signature.outputs) + " |";
    EXPECT_NE(text.find(row), std::string::npos) << row;
  }
}

TEST(GraphFormatDocument, NamesEveryAttribute) {
  const std::string text = between(format_document(), "## Attributes", "##");
  for (std::size_t i = 0; i < kOperations; ++i) {
    OperationAttributes attributes = info_of(static_cast<Operation>(i)).attributes;
    const auto look = [&](const char* name, const auto&) {
      EXPECT_NE(text.find("`" + std::string(name) + "` `"), std::string::npos) << name;
    };
    std::visit([&](auto& held) { for_each_field(held, look); }, attributes);
  }
}

}  // namespace
}  // namespace terrace

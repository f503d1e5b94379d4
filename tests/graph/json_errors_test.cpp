#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "graph/nets.hpp"
#include "terrace/graph_json.hpp"
#include "terrace/operation.hpp"

namespace terrace {
namespace {

std::string refusal(const std::string& text) {
  const auto graph = graph_from_json(text);
  if (!graph) return graph.error().message;
  const auto known = check_operations(*graph);
  return known.ok() ? "accepted" : "cannot read the graph: " + known.error().message;
}

/// A small graph in which `where` (a JSON pointer) holds `value` instead.
std::string altered(const std::string& where, const std::string& value) {
  auto json = nlohmann::json::parse(R"({
    "format": "terrace-graph", "version": 1, "layers": ["one"],
    "tensors": [{"name": "x", "shape": [2, 3], "kind": "input"},
                {"name": "w", "shape": [4, 3], "kind": "weight", "initial": {"kind": "constant"}},
                {"name": "y", "shape": [2, 4]}, {"name": "s", "bytes": 8, "kind": "workspace"}],
    "kernels": [{"name": "fc", "operation": "linear", "inputs": ["x", {"tensor": "w", "touched": 4}],
                 "outputs": ["y"], "workspace": "s", "in_place": [[0, 0]],
                 "variants": [{"name": "v"}]},
                {"name": "p", "operation": "max_pool2d", "attributes": {"kernel": [2, 2]},
                 "inputs": ["x"], "outputs": ["y"]}],
    "results": ["y"]})");
  json[nlohmann::json::json_pointer(where)] = nlohmann::json::parse(value);
  return json.dump();
}

struct Case {
  const char *where, *value, *message;
};

TEST(GraphJsonErrors, NamesThePlaceOfEveryMistake) {
  ASSERT_EQ(refusal(altered("/results", "[]")), "accepted");
  const std::vector<Case> cases{
      {"/format", "\"onnx\"", "this is no graph: the key 'format' must be 'terrace-graph'"},
      {"/version", "2", "the key 'version' must be 1, the one this build reads"},
      {"/nmae", "1",
       "unknown key 'nmae'; there are format, version, name, layers, tensors, kernels, results"},
      {"/name", "1", "name: a string is wanted, not number"},
      {"/layers", "{}", "layers: an array is wanted, not object"},
      {"/layers/0", "7", "layers[0]: a string is wanted, not number"},
      {"/tensors", "7", "tensors: an array is wanted, not number"},
      {"/tensors/0", "[]", "tensors[0]: an object is wanted, not array"},
      {"/tensors/0", "{\"shape\": [1]}", "tensors[0]: the key 'name' is missing"},
      {"/tensors/0", "{\"name\": \"x\"}", "tensors[0]: a tensor needs a shape or bytes"},
      {"/tensors/0/name", "\"w\"", "tensors[1]: there are two tensors named 'w'"},
      {"/tensors/0/name", "\"\"", "kernels[0].inputs[0]: there is no tensor named 'x'"},
      {"/tensors/3/type", "\"u8\"", "tensors[3].type: a type needs a shape; a tensor of bytes has none"},
      {"/tensors/0/type", "\"f8\"",
       "tensors[0].type: 'f8' is not known; there are f32, bf16, i32, u8, f16, f64, i64"},
      {"/tensors/0/kind", "\"\"",
       "tensors[0].kind: '' is not known; there are input, weight, activation, gradient, optimizer_state, "
       "statistics, workspace, token"},
      {"/tensors/0/shape/1", "-3",
       "tensors[0].shape[1]: a whole number from 0 to 9223372036854775807 is wanted, not -3"},
      {"/tensors/0/shape/1", "3.5",
       "tensors[0].shape[1]: a whole number from 0 to 9223372036854775807 is wanted, not 3.5"},
      {"/tensors/0/shape/1", "9223372036854775808",
       "tensors[0].shape[1]: a whole number from 0 to 9223372036854775807 is wanted, not "
       "9223372036854775808"},
      {"/tensors/0/shape/1", "\"3\"",
       "tensors[0].shape[1]: a whole number from 0 to 9223372036854775807 is wanted, not string"},
      {"/tensors/0/shape", "[1, 1, 1, 1, 1, 1, 1]", "tensors[0].shape: a shape has at most 6 extents"},
      {"/tensors/0/shape", "[4294967296, 4294967296]",
       "tensors[0].shape: there are more bytes in this shape than 63 bits count"},
      {"/tensors/0/shape", "[0, 4294967296, 4294967296]",
       "tensors[0].shape: there are more bytes in this shape than 63 bits count"},
      {"/tensors/0/bytes", "23", "x has 23 bytes, but f32 [2, 3] takes 24"},
      {"/tensors/0/bytes", "1e3",
       "tensors[0].bytes: a whole number from 0 to 9223372036854775807 is wanted, not 1000.0"},
      {"/tensors/0/bytes", "9223372036854775807", "w brings the tensors' bytes to more than 63 bits count"},
      {"/tensors/0/persistent", "1", "tensors[0].persistent: true or false is wanted, not number"},
      {"/tensors/1/initial/kind", "\"zero\"",
       "tensors[1].initial.kind: 'zero' is not known; there are undefined, constant, uniform, normal, "
       "positions"},
      {"/tensors/1/initial/c", "1", "tensors[1].initial: unknown key 'c'; there are kind, a, b"},
      {"/tensors/1/initial/a", "1e40", "tensors[1].initial.a: 1e+40 is too large for a float"},
      {"/kernels/0/inptus", "[]",
       "kernels[0]: unknown key 'inptus'; there are name, operation, attributes, inputs, outputs, workspace, "
       "in_place, flops, layer, phase, variants"},
      {"/kernels/0/operation", "\"\"", "kernels[0].operation: an operation has a name"},
      {"/kernels/0/attributes", "{\"scale\": 1}",
       "fc has the attribute scale, which linear does not take: it has none"},
      {"/kernels/1/attributes/kernal", "1",
       "p has the attribute kernal, which max_pool2d does not take: there are kernel, stride, padding, "
       "dilation, groups, include_padding"},
      {"/kernels/1/attributes/kernel", "[1]",
       "p has an impossible kernel: a pair of whole numbers not below zero, of height and width, is wanted"},
      {"/kernels/1/attributes/kernel/1", "-1",
       "p has an impossible kernel: a pair of whole numbers not below zero, of height and width, is wanted"},
      {"/kernels/1/attributes/kernel/1", "0.5",
       "kernels[1].attributes.kernel[1]: a whole number of 63 bits is wanted"},
      {"/kernels/1/attributes/kernel", "{}",
       "kernels[1].attributes.kernel: true or false, a number, a string or a list of whole numbers is "
       "wanted"},
      {"/kernels/1/attributes", "7", "kernels[1].attributes: an object is wanted, not number"},
      {"/kernels/1/attributes/groups", "9223372036854775808",
       "kernels[1].attributes.groups: a whole number of 63 bits is wanted"},
      {"/kernels/1/attributes/include_padding", "1",
       "p has an impossible include_padding: true or false is wanted"},
      {"/kernels/0/inputs/1/tensor", "\"v\"", "kernels[0].inputs[1].tensor: there is no tensor named 'v'"},
      {"/kernels/0/inputs/1/touhced", "1",
       "kernels[0].inputs[1]: unknown key 'touhced'; there are tensor, shape, touched, layout"},
      {"/kernels/0/inputs/0", "0", "kernels[0].inputs[0]: an object is wanted, not number"},
      {"/kernels/0/inputs/1/shape", "[4]", "fc sees w of shape [4, 3] as [4]"},
      {"/kernels/0/inputs/1/shape", "[4611686018427387904, 4, 12]",
       "fc sees w of shape [4, 3] as [4611686018427387904, 4, 12]"},
      {"/kernels/0/inputs", "[\"x\"]", "fc has 1 inputs, but linear reads (x weight bias?)"},
      {"/kernels/0/workspace", "\"t\"", "kernels[0].workspace: there is no tensor named 't'"},
      {"/kernels/0/workspace", "\"y\"", "fc takes y for a workspace, which is of kind activation"},
      {"/kernels/0/in_place/0", "[0]",
       "kernels[0].in_place[0]: two numbers are wanted: which input, which output"},
      {"/kernels/0/in_place/0/1", "256",
       "kernels[0].in_place[0][1]: a whole number from 0 to 255 is wanted, not 256"},
      {"/kernels/0/in_place/0/1", "1", "fc pairs an operand in place that it does not have"},
      {"/kernels/0/flops", "-1", "kernels[0].flops: a number not below zero is wanted, not -1"},
      {"/kernels/0/layer", "1", "fc belongs to a layer that does not exist"},
      {"/kernels/0/layer", "4294967296",
       "kernels[0].layer: a whole number from 0 to 4294967295 is wanted, not 4294967296"},
      {"/kernels/0/phase", "\"late\"",
       "kernels[0].phase: 'late' is not known; there are forward, backward, update"},
      {"/kernels/0/variants/0/time", "\"1ms\"",
       "kernels[0].variants[0].time: a number is wanted, not string"},
      {"/kernels/0/variants/0/speed", "1",
       "kernels[0].variants[0]: unknown key 'speed'; there are name, workspace, time"},
      {"/results/0", "\"z\"", "results[0]: there is no tensor named 'z'"},
      {"/results/0", "\"s\"", "s is a result that no kernel writes"},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(refusal(altered(one.where, one.value)), std::string("cannot read the graph: ") + one.message)
        << one.where << " = " << one.value;
  }
}

TEST(GraphJsonErrors, WantsAnObjectOfThisFormat) {
  EXPECT_EQ(refusal("[]"), "cannot read the graph: an object is wanted, not array");
  EXPECT_EQ(refusal("{}"),
            "cannot read the graph: this is no graph: the key 'format' must be 'terrace-graph'");
  EXPECT_EQ(refusal(R"({"format": "terrace-graph", "version": 1, "tensors": []})"),
            "cannot read the graph: the key 'kernels' is missing");
}

TEST(GraphJsonErrors, NamesTheLineThatIsNoJson) {
  EXPECT_EQ(refusal(""), "cannot read the graph: line 1, column 1: the text is not JSON here");
  EXPECT_EQ(refusal("{\n  \"format\": oops}"),
            "cannot read the graph: line 2, column 13: the text is not JSON here");
  EXPECT_EQ(refusal("{\"a\": \"\xff\"}"),
            "cannot read the graph: line 1, column 8: the text is not JSON here");
  EXPECT_EQ(refusal("[1e999]"), "cannot read the graph: the text holds a number too large for any type");
}

TEST(GraphJsonErrors, RefusesAKeyThatStandsTwice) {
  EXPECT_EQ(refusal(R"({"format": "terrace-graph", "format": "terrace-graph"})"),
            "cannot read the graph: the key 'format' stands twice in one object");
}

TEST(GraphJsonErrors, RefusesHostileNesting) {
  const std::string deep(1'000'000, '[');
  EXPECT_EQ(refusal(deep), "cannot read the graph: the text nests values more than 32 deep");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(refusal(objects), "cannot read the graph: the text nests values more than 32 deep");
}

TEST(GraphJsonErrors, ShortensWhatItQuotes) {
  const std::string message = refusal(altered("/results/0", "\"" + std::string(100'000, 'z') + "\""));
  EXPECT_EQ(message,
            "cannot read the graph: results[0]: there is no tensor named '" + std::string(40, 'z') + "...'");
}

TEST(GraphJsonErrors, RefusesEveryTruncation) {
  const std::string text = to_json_text(in_parts());
  for (std::size_t size = 0; size + 2 < text.size(); size += 37) {
    EXPECT_NE(refusal(text.substr(0, size)), "accepted") << size;
  }
}

}  // namespace
}  // namespace terrace

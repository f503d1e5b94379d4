// What the backend of this processor refuses, in sentences.
#include "backends/processor.hpp"

#include <gtest/gtest.h>

#include "backends/backend.hpp"
#include "terrace/net.hpp"

namespace terrace {
namespace {

Graph one_relu() {
  Net net("one");
  net.result(net.relu(net.input("x", {2, 3})));
  return std::move(net).finish();
}

std::string refusal(const Graph& graph) {
  const auto backend = processor_backend();
  if (!backend) return "";
  const auto lowered = (*backend)->lower(graph, 1);
  return lowered.ok() ? "accepted" : lowered.error().message;
}

TEST(ProcessorBackend, RefusesTypesThatItDoesNotComputeWith) {
  if (!processor_backend()) GTEST_SKIP() << processor_backend().error().message;
  EXPECT_EQ(refusal(one_relu()), "accepted");
  for (const DataType type : {DataType::f16, DataType::f64, DataType::i64}) {
    Graph graph = one_relu();
    for (Tensor& tensor : graph.tensors) {
      tensor.type = type;
      tensor.bytes = 6 * size_of(type);
    }
    EXPECT_EQ(refusal(graph), "tensor x holds " + std::string(to_string(type)) +
                                  ", and this processor's kernels compute with f32, bf16, i32 and u8");
  }
}

TEST(ProcessorBackend, RefusesOperationsThatItDoesNotHave) {
  if (!processor_backend()) GTEST_SKIP() << processor_backend().error().message;
  Graph graph = one_relu();
  graph.kernels[0].operation = "acme.relu";
  EXPECT_EQ(refusal(graph),
            "kernel relu is not an operation this engine has: such graphs can be planned and simulated, not "
            "run");
  graph.kernels[0].operation = "relu";
  graph.kernels[0].attributes.set("slope", 0.5);
  EXPECT_EQ(refusal(graph), "relu has the attribute slope, which relu does not take: it has none");
}

}  // namespace
}  // namespace terrace

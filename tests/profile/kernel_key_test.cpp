#include "profile/kernel_key.hpp"

#include <gtest/gtest.h>

#include "backends/processor.hpp"
#include "profile/operands.hpp"
#include "terrace/operation.hpp"

namespace terrace {
namespace {

Graph pooling() {
  Graph graph = one_kernel({64}, {16}, 0);
  Kernel& kernel = graph.kernels[0];
  kernel.name = "pool";
  kernel.operation = to_string(Operation::avg_pool2d);
  kernel.attributes = to_attributes(Window{});
  kernel.inputs[0].shape = {1, 1, 4, 4};
  kernel.outputs[0].shape = {1, 1, 2, 2};
  return graph;
}

std::string key_of(const Graph& graph) { return kernel_key(**processor_backend(), graph, graph.kernels[0]); }

template <class Change>
bool changes_key(Change change) {
  Graph graph = pooling();
  change(graph, graph.kernels[0]);
  return key_of(graph) != key_of(pooling());
}

TEST(KernelKey, IsTheSameWhateverThingsAreCalled) {
  EXPECT_FALSE(changes_key([](Graph& graph, Kernel& kernel) {
    kernel.name = "other";
    kernel.layer = 7;
    graph.tensors[0].name = "other";
  }));
}

TEST(KernelKey, ChangesWithAllThatMayChangeTheTime) {
  EXPECT_TRUE(
      changes_key([](Graph&, Kernel& kernel) { kernel.operation = to_string(Operation::max_pool2d); }));
  EXPECT_TRUE(changes_key([](Graph&, Kernel& kernel) {
    kernel.attributes.set("stride", std::vector<std::int64_t>{1, 2});
  }));
  EXPECT_TRUE(changes_key([](Graph&, Kernel& kernel) { kernel.inputs[0].shape = {1, 4, 2, 2}; }));
  EXPECT_TRUE(changes_key([](Graph&, Kernel& kernel) { kernel.outputs[0].layout = "blocked"; }));
  EXPECT_TRUE(changes_key([](Graph& graph, Kernel&) { graph.tensors[0].type = DataType::u8; }));
  EXPECT_TRUE(changes_key([](Graph& graph, Kernel&) { graph.tensors[0].bytes = Bytes{128}; }));
  EXPECT_TRUE(changes_key([](Graph& graph, Kernel&) { add_workspace(graph, 64); }));
  EXPECT_TRUE(changes_key([](Graph&, Kernel& kernel) { kernel.variants = {{"jit", {}, {}}}; }));
}

TEST(KernelKey, TellsWhichOperandsAreTheSameMemory) {
  Graph apart = one_kernel({64, 64}, {64}, 0), together = apart;
  together.kernels[0].inputs[1].tensor = together.kernels[0].inputs[0].tensor;
  EXPECT_NE(key_of(apart), key_of(together));
}

TEST(KernelKey, DoesNotCareWhichRandomNumbersADropoutDraws) {
  Graph one = one_kernel({64}, {64}, 0), other = one;
  one.kernels[0].attributes = to_attributes(DropoutAttributes{0.5F, 1});
  other.kernels[0].attributes = to_attributes(DropoutAttributes{0.5F, 2});
  EXPECT_EQ(key_of(one), key_of(other));
  other.kernels[0].attributes = to_attributes(DropoutAttributes{0.25F, 1});
  EXPECT_NE(key_of(one), key_of(other));
}

}  // namespace
}  // namespace terrace

#include "exec/store.hpp"

#include "exec/planned.hpp"

namespace terrace {
namespace {
using namespace literals;

TEST(Store, WritesEveryRegionOfATensor) {
  const Program program = compile(small_resnet(), 1).value();
  const Graph& graph = program.graph;
  const TensorId bias = find_tensor(graph, "fc.bias");
  for (const SlowTier& slow : {fake_memory(), fake_blocks()}) {
    SCOPED_TRACE(slow.name);
    Plan plan;
    plan.budget = {1_MiB, 1_MiB};
    plan.start = {{bias, {0}, 128}, {bias, {1}, 1024}};
    const OpenTiers tiers = OpenTiers::open({graph.name, slow.machine, plan.budget}).value();
    const Store store(*program.backend, graph, slow.machine, plan, tiers);
    const std::vector<float> values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    store.write(bias, values);
    EXPECT_EQ(store.read(bias), values);
    std::vector<std::byte> fast(graph[bias].bytes.count), other(fast.size());
    tiers.read({{0}, 128}, fast);
    tiers.read({{1}, 1024}, other);
    EXPECT_EQ(fast, other);
    EXPECT_NE(fast, std::vector<std::byte>(fast.size()));
  }
}

}  // namespace
}  // namespace terrace

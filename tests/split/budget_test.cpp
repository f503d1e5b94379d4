// Training in less memory than the largest kernel of the graph takes.
#include <gtest/gtest.h>

#include "split/nets.hpp"
#include "terrace/pipeline.hpp"

namespace terrace {
namespace {

using namespace literals;

/// Memory and something that only transfers reach.
Machine memory_and_blocks() {
  Machine machine;
  machine.name = "memory and blocks";
  MachineTier dram, blocks;
  dram.name = "dram";
  dram.capacity = blocks.capacity = 1_GiB;
  dram.read = dram.write = {1e10};
  dram.granularity = 64_B;
  dram.spec = "dram:1GiB";
  blocks.name = "blocks";
  blocks.addressable = false;
  blocks.read = blocks.write = {1e9};
  blocks.granularity = 512_B;
  blocks.spec = "fake:1MiB,blocks";
  machine.tiers = {dram, blocks};
  machine.links = {{{0}, {1}, {{1_MiB, {1e9}}}}, {{1}, {0}, {{1_MiB, {1e9}}}}};
  machine.compute = {"processor", 1, 1e11};
  return machine;
}

/// As `prepare` would make it of this machine, compiled.
Workload workload_of(const Graph& graph) {
  Program program = compile(graph, 1).value();
  const Bytes peak = program.peak;
  return {std::move(program), memory_and_blocks(), true, peak};
}

WorkloadRequest request_of(const Graph& graph) { return {.graph = graph, .threads = 1}; }

VerifiedPlan planned(const Workload& workload, Bytes fast) {
  const Profile profile = estimate(workload.graph(), workload.machine);
  const std::vector<Bytes> budget{fast, workload.machine.tiers[1].capacity};
  return plan_of(workload, profile, budget, "prefetch").value().plan;
}

Bytes least(const Workload& workload) { return least_budget(workload.graph(), workload.machine).bytes; }

TEST(SplitBudget, AWorkloadThatFitsIsLeftAlone) {
  const Graph graph = test::classifier(300, 131);
  const Workload whole = workload_of(graph);
  const Workload fitted = fit(request_of(graph), whole, least(whole)).value();
  EXPECT_EQ(fitted.split_kernels, 0U);
  EXPECT_EQ(fitted.graph(), whole.graph());
}

TEST(SplitBudget, TrainsWithTheSameBitsAsTheSplitGraphWithAllMemory) {
  for (const Graph& graph : {test::classifier(700, 200), test::classifier(500, 150, test::adam()),
                             test::tied(900, 40), test::residual(48, 20), test::pictures(8, 12, 64)}) {
    const Workload whole = workload_of(graph);
    SCOPED_TRACE(graph.name + ", for " +
                 whole.graph()[least_budget(whole.graph(), whole.machine).kernel].name);
    const Bytes fast{least(whole).count * 9 / 10};
    const Workload fitted = fit(request_of(graph), whole, fast).value();
    ASSERT_GT(fitted.split_kernels, 0U) << fitted.not_split;
    ASSERT_LE(least(fitted), fast);
    EXPECT_EQ(fitted.peak, whole.program.peak);
    const TrainerOptions options{.seed = 1, .learning_rate = 0.01F};
    Trainer limited = Trainer::start(fitted.program, planned(fitted, fast), fitted.machine, options).value();
    Trainer unlimited = Trainer::start(fitted.program, options).value();
    for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(step(limited, i), step(unlimited, i));
    test::expect_same_bits(unlimited, limited);
  }
}

TEST(SplitBudget, AThirdOfWhatTheLargestKernelTakesIsEnoughForAClassifier) {
  const Graph graph = test::classifier(2000, 300);
  const Workload whole = workload_of(graph);
  const Bytes fast{least(whole).count / 3};
  EXPECT_LE(least(fit(request_of(graph), whole, fast).value()), fast);
}

TEST(SplitBudget, WhereItDoesNotHelpThereIsAReason) {
  const Graph graph = small_lstm();
  const Workload whole = workload_of(graph);
  const Bytes fast{least(whole).count / 3};
  const Workload fitted = fit(request_of(graph), whole, fast).value();
  EXPECT_GT(least(fitted), fast);
  EXPECT_NE(fitted.not_split.find("lstm_backward cannot be worked on in parts of its weights"),
            std::string::npos)
      << fitted.not_split;
  const auto profile = profile_of(fitted, {fast, 1_GiB});
  ASSERT_FALSE(profile.ok());
  EXPECT_NE(profile.error().message.find(fitted.not_split), std::string::npos) << profile.error().message;
}

}  // namespace
}  // namespace terrace

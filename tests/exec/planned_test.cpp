// SPDX-License-Identifier: Apache-2.0
#include "exec/planned.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace terrace {
namespace {
using namespace literals;

TEST(PlannedTrainer, GivesTheBitsOfUnlimitedMemory) {
  const TemporaryFolder folder;
  for (const Graph& graph : small_graphs()) {
    Trainer unlimited = start_unlimited(graph);
    std::vector<float> losses;
    for (std::uint64_t i = 0; i < 3; ++i) losses.push_back(step(unlimited, i));
    for (const SlowTier& slow : slow_tiers_of_each_sort(folder)) {
      SCOPED_TRACE(graph.name + " over " + slow.name);
      Trainer planned = start(graph, slow);
      for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(step(planned, i), losses[i]) << i;
      expect_same_state(planned, unlimited);
    }
  }
}

/// Kernels and transfers share the cores.
TEST(PlannedTrainer, GivesTheSameBitsWithSeveralThreads) {
  Trainer unlimited = start_unlimited(small_resnet(), 2);
  Trainer planned = start(small_resnet(), fake_blocks(), {.seed = 1, .learning_rate = 0.01F}, 2);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(step(planned, i), step(unlimited, i)) << i;
  expect_same_state(planned, unlimited);
}

TEST(PlannedTrainer, StartsWithTheWeightsOfUnlimitedMemory) {
  const TemporaryFolder folder;
  for (const Graph& graph : {small_resnet(), small_gpt()}) {
    const Trainer unlimited = start_unlimited(graph);
    for (const SlowTier& slow : slow_tiers(folder)) {
      SCOPED_TRACE(graph.name + " over " + slow.name);
      expect_same_state(start(graph, slow), unlimited);
    }
  }
}

/// Weights larger than what is staged at once.
Graph wide_network() {
  Net net("wide");
  const Value x = net.input("x", {2, 1200});
  net.train(net.binary_cross_entropy(net.linear("b", net.linear("a", x, 1200), 1199), 1), {});
  return std::move(net).finish();
}

TEST(PlannedTrainer, ReadsAndWritesTensorsOfAnySizeInTiersThatKernelsCannotUse) {
  Trainer trainer = start(wide_network(), fake_blocks());
  Trainer unlimited = start_unlimited(wide_network());
  for (Trainer* each : {&trainer, &unlimited}) {
    std::vector<float> values(1200 * 1200);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1013) * 1e-4F;
    each->write("a.weight", values);
    EXPECT_TRUE(same_bits(each->read("a.weight"), values));
  }
  EXPECT_EQ(step(trainer, 1), step(unlimited, 1));
  expect_same_state(trainer, unlimited);
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(PlannedTrainer, SavesAndLoadsTheSameFilesWhereverWeightsLie) {
  const TemporaryFolder folder;
  for (const SlowTier& slow : slow_tiers(folder)) {
    SCOPED_TRACE(slow.name);
    Trainer planned = start(small_resnet(), slow), unlimited = start_unlimited(small_resnet());
    step(planned, 1);
    step(unlimited, 1);
    planned.save_weights(folder / "planned").value();
    unlimited.save_weights(folder / "unlimited").value();
    EXPECT_EQ(contents(folder / "planned"), contents(folder / "unlimited"));
    Trainer other = start(small_resnet(), slow, {.seed = 9});
    other.load_weights(folder / "unlimited").value();
    other.save_weights(folder / "again").value();
    EXPECT_EQ(other.read("fc.weight"), unlimited.read("fc.weight"));
  }
}

TEST(PlannedTrainer, RunsWithLessFastMemoryThanTheGraphHasLiveAtOnce) {
  for (const Graph& graph : small_graphs()) {
    SCOPED_TRACE(graph.name);
    const Program program = compile(graph, 1).value();
    EXPECT_LT(plan_for(program, fake_blocks())->budget[0], program.peak);
  }
}

TEST(PlannedTrainer, LeavesTiersWithoutABudgetClosed) {
  SlowTier slow = fake_memory();
  slow.machine.tiers.push_back(slow.machine.tiers[1]);
  slow.machine.tiers[2].name = "nowhere";
  slow.machine.tiers[2].spec = "file:/does/not/exist:1GiB";
  const Program program = compile(small_resnet(), 1).value();
  Plan plan = spill_plan(program.graph, slow.machine);
  plan.budget.push_back(Bytes{0});
  const auto verified = verify(program.graph, slow.machine, plan).value();
  EXPECT_TRUE(Trainer::start(program, verified, slow.machine, {}));
}

// ---- Refusals

std::string refusal(const Program& program, const SlowTier& slow, std::vector<Bytes> budget = {}) {
  Plan plan = spill_plan(program.graph, slow.machine);
  if (!budget.empty()) plan.budget = budget;
  const auto verified = verify(program.graph, slow.machine, plan).value();
  bool opened = false;
  const auto open = [&](const TierSpec& spec) {
    opened = opened || spec.kind == TierKind::dram;
    return open_tier(spec);
  };
  const auto started = Trainer::start(program, verified, slow.machine, {.open = open});
  EXPECT_FALSE(started);
  EXPECT_FALSE(opened) << "nothing is allocated";
  return started ? "" : started.error().message;
}

void expect_mentions(const std::string& message, std::initializer_list<const char*> words) {
  for (const char* word : words) EXPECT_NE(message.find(word), std::string::npos) << message;
}

TEST(PlannedTrainer, RefusesThePlanOfAnotherGraph) {
  const Program resnet = compile(small_resnet(), 1).value(), gpt = compile(small_gpt(), 1).value();
  const SlowTier slow = fake_blocks();
  const auto started = Trainer::start(gpt, plan_for(resnet, slow), slow.machine, {});
  ASSERT_FALSE(started);
  expect_mentions(started.error().message, {"another graph", "small gpt"});
}

TEST(PlannedTrainer, RefusesThePlanOfAnotherMachine) {
  const Program program = compile(small_resnet(), 1).value();
  Machine other = fake_blocks().machine;
  other.name = "other";
  other.tiers[1].granularity = 4_KiB;
  const auto started = Trainer::start(program, plan_for(program, fake_blocks()), other, {});
  ASSERT_FALSE(started);
  expect_mentions(started.error().message, {"another machine", "other"});
}

TEST(PlannedTrainer, RefusesAMachineOfAnotherComputer) {
  SlowTier slow = fake_memory();
  slow.machine.tiers[1].spec.clear();
  expect_mentions(refusal(compile(small_resnet(), 1).value(), slow),
                  {"slow", "has no spec", "another computer"});
}

TEST(PlannedTrainer, RefusesMoreMemoryThanThereIs) {
  SlowTier slow = fake_blocks();
  for (MachineTier& tier : slow.machine.tiers) tier.capacity = 1_TiB;
  const std::string message = refusal(compile(small_resnet(), 1).value(), slow, {100_GiB, 900_GiB});
  expect_mentions(message, {"small resnet needs 1000.01 GiB", "dram 100.00 GiB", "slow 900.00 GiB"});
}

TEST(PlannedTrainer, RefusesADiskThatIsTooSmall) {
  const TemporaryFolder folder;
  SlowTier slow{"file", two_tiers("file:" + (folder / "spill") + ":1GiB,buffered", {64}, {4096}, false)};
  slow.machine.tiers[1].capacity = 4096_TiB;
  const Program program = compile(small_resnet(), 1).value();
  const Bytes fast = plan_for(program, slow)->budget[0];
  expect_mentions(refusal(program, slow, {fast, 4096_TiB}), {"spill", "4096", "TiB"});
  EXPECT_TRUE(folder.empty());
}

TEST(PlannedTrainer, RefusesATierThatIsNotWhatTheMachineSays) {
  const Program program = compile(small_resnet(), 1).value();
  const SlowTier coarse{"coarse", two_tiers("fake:1MiB,blocks,block=4KiB", {64}, {512}, false)};
  const SlowTier blocks{"blocks", two_tiers("fake:1MiB,blocks", {64}, {512}, true)};
  for (const SlowTier& slow : {coarse, blocks}) {
    const auto started = Trainer::start(program, plan_for(program, slow), slow.machine, {});
    ASSERT_FALSE(started);
    expect_mentions(started.error().message, {"the machine says", "calibrate"});
  }
}

}  // namespace
}  // namespace terrace

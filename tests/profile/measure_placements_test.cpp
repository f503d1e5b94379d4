// SPDX-License-Identifier: Apache-2.0
#include "profile/measure_placements.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "exec/nets.hpp"
#include "profile/operands.hpp"
#include "profile/roofline.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace {
namespace {

using namespace literals;

constexpr TierId kFast{0}, kSlow{1};
constexpr Bytes kBudget = 4_MiB;
/// Opened to what kernels need, never whole: no computer has as much.
constexpr const char* kEmulated = "emulated:1024TiB,read=2MB/s,write=1MB/s,latency=1ms";

std::size_t tensors_of(const Kernel& kernel) {
  std::set<TensorId> tensors;
  for (const auto* operands : {&kernel.inputs, &kernel.outputs}) {
    for (const Operand& operand : *operands) tensors.insert(operand.tensor);
  }
  return tensors.size() + (kernel.workspace ? 1 : 0);
}

/// A lowered graph of a single kernel, the first that reads and writes so many tensors, none in place.
Graph kernel_of(std::size_t tensors) {
  Graph graph = compile(small_resnet(), 1).value().graph;
  const auto found = std::find_if(graph.kernels.begin(), graph.kernels.end(), [=](const Kernel& kernel) {
    return tensors_of(kernel) == tensors && operand_count(kernel) == tensors;
  });
  EXPECT_NE(found, graph.kernels.end());
  graph.kernels = {Kernel(*found)};
  return graph;
}

Machine machine_with(const std::string& slow) {
  Machine machine = two_tier_machine();
  machine.tiers[1].spec = slow;
  return machine;
}

/// Counts what is really measured, and keeps what was told.
struct Rig {
  Graph graph;
  Machine machine = machine_with(kEmulated);
  std::vector<Bytes> budgets{kBudget, kBudget};
  Seconds placement_time{1e9};
  ProfileStore* store = nullptr;
  std::size_t calls = 0;
  MeasureProgress last = {};
  std::vector<std::string> told = {};

  Profile measured() {
    MeasureOptions options{1, budgets[0] + budgets[1], store, [this](const MeasureProgress& progress) {
                             ++calls;
                             last = progress;
                           }};
    options.tier_budgets = budgets;
    options.placement_time = placement_time;
    options.note = [this](const std::string& why) { told.push_back(why); };
    return measure(graph, machine, options).value();
  }
  /// Where the only kernel was measured.
  static std::vector<OperandTiers> places(const Profile& profile) {
    std::vector<OperandTiers> places;
    for (const PlacedTime& time : profile.kernels.at(0).variants.at(0)) places.push_back(time.tiers);
    return places;
  }
};

TEST(MeasurePlacements, MeasuresAllCombinationsOfAKernelOfTwoTensors) {
  Rig rig{kernel_of(2)};
  const Profile profile = rig.measured();
  EXPECT_EQ(Rig::places(profile),
            (std::vector<OperandTiers>{{kFast, kFast}, {kSlow, kSlow}, {kSlow, kFast}, {kFast, kSlow}}));
  for (const PlacedTime& time : profile.kernels[0].variants[0]) {
    EXPECT_GE(time.samples, 3U);
    EXPECT_GE(time.cold, time.warm);
  }
  EXPECT_TRUE(profile.is_measured());
  EXPECT_TRUE(rig.told.empty()) << rig.told.front();
  EXPECT_EQ(rig.last.done, rig.last.all);
}

TEST(MeasurePlacements, TakesNoLessThanTheDeclaredRatesAskFor) {
  Rig rig{kernel_of(2)};
  const Profile profile = rig.measured();
  const TierSpec slow = parse_tier_spec(kEmulated).value();
  const KernelClock clock(rig.graph, rig.machine, profile);
  for (const PlacedTime& time : profile.kernels[0].variants[0]) {
    Bytes read, written;
    for (std::size_t i = 0; i < time.tiers.size(); ++i) {
      const OperandUse use = operand_use(rig.graph, rig.graph.kernels[0], i);
      if (time.tiers[i] == kSlow) read += use.read, written += use.written;
    }
    if (read + written == Bytes{}) continue;
    const Seconds charged = read / slow.read_rate + written / slow.write_rate + slow.latency;
    EXPECT_GE(time.warm, charged);
    EXPECT_GE(clock.time({0}, 0, time.tiers), charged) << "found by those who ask the clock";
  }
}

TEST(MeasurePlacements, LeavesManyCombinationsToTheClock) {
  Rig rig{kernel_of(5)};
  const Profile profile = rig.measured();
  EXPECT_EQ(Rig::places(profile).size(), 1 + 1 + 5U);
  const KernelClock clock(rig.graph, rig.machine, profile);
  const Seconds composed = clock.access({0}, 0, kSlow) + clock.access({0}, 1, kSlow);
  ASSERT_GT(composed, clock.fast({0}));
  EXPECT_EQ(clock.time({0}, 0, OperandTiers{kSlow, kSlow, kFast, kFast, kFast}), composed);
}

TEST(MeasurePlacements, TakesFromEachTierNoMoreThanItsBudget) {
  Rig rig{kernel_of(2)};
  const std::vector<Bytes> alone =
      benchmark_bytes(rig.graph, rig.graph.kernels[0], OperandTiers{kFast, kSlow});
  rig.budgets[1] = alone[0] + alone[1] - 64_B;
  EXPECT_EQ(Rig::places(rig.measured()),
            (std::vector<OperandTiers>{{kFast, kFast}, {kSlow, kFast}, {kFast, kSlow}}));
  rig.budgets = {alone[0] + alone[1] - 64_B, kBudget};
  EXPECT_EQ(Rig::places(rig.measured()).size(), 4U) << "tier 0 is measured within the budget of all";
  rig.budgets = {0_B, kBudget};
  EXPECT_EQ(Rig::places(rig.measured()), (std::vector<OperandTiers>{{kFast, kFast}, {kSlow, kSlow}}));
  rig.budgets = {kBudget, 0_B};
  EXPECT_EQ(Rig::places(rig.measured()), (std::vector<OperandTiers>{{kFast, kFast}}));
}

TEST(MeasurePlacements, TakesFromTheStoreWhatItKnows) {
  const TemporaryFolder folder;
  Rig rig{compile(small_gpt(), 1).value().graph};
  rig.placement_time = Seconds{0};
  Profile first;
  {
    auto store = ProfileStore::open(folder / "store").value();
    rig.store = &store;
    first = rig.measured();
    EXPECT_GT(rig.calls, 0U);
  }
  auto store = ProfileStore::open(folder / "store").value();
  Rig again{rig.graph};
  again.store = &store;
  EXPECT_EQ(again.measured(), first) << "what was left out for time is not tried again";
  EXPECT_EQ(again.calls, 0U);
  again.machine = machine_with("emulated:1GiB,read=2MB/s,write=1MB/s,latency=1ms");
  EXPECT_EQ(again.measured().kernels, first.kernels) << "the same but for its capacity";
  EXPECT_EQ(again.calls, 0U);
}

TEST(MeasurePlacements, MeasuresAgainForATierOfOtherRates) {
  const TemporaryFolder folder;
  auto store = ProfileStore::open(folder / "store").value();
  Rig rig{kernel_of(2)};
  rig.store = &store;
  rig.measured();
  EXPECT_EQ(rig.calls, 2U) << "in tier 0 and elsewhere";
  rig.machine = machine_with("emulated:1GiB,read=5MB/s,write=1MB/s,latency=1ms");
  rig.measured();
  EXPECT_EQ(rig.calls, 3U);
}

TEST(MeasurePlacements, MeasuresMoreWhereABudgetHasGrown) {
  const TemporaryFolder folder;
  auto store = ProfileStore::open(folder / "store").value();
  Rig rig{kernel_of(2)};
  rig.store = &store;
  rig.budgets = {0_B, kBudget};
  const Profile small = rig.measured();
  rig.budgets = {kBudget, kBudget};
  const Profile large = rig.measured();
  EXPECT_EQ(rig.calls, 3U);
  ASSERT_EQ(Rig::places(large).size(), 4U);
  EXPECT_EQ(large.kernels[0].variants[0][1], small.kernels[0].variants[0][1]);
}

TEST(MeasurePlacements, MeasuresTheFirstPlacementHoweverLittleTimeThereIs) {
  Rig rig{kernel_of(2)};
  rig.placement_time = Seconds{0};
  EXPECT_EQ(Rig::places(rig.measured()), (std::vector<OperandTiers>{{kFast, kFast}, {kSlow, kSlow}}));
}

TEST(MeasurePlacements, TellsWhyATierIsNotMeasuredAndGoesOn) {
  Rig rig{kernel_of(2)};
  rig.machine = machine_with("numa:1000:1GiB");
  EXPECT_EQ(Rig::places(rig.measured()), (std::vector<OperandTiers>{{kFast, kFast}}));
  ASSERT_EQ(rig.told.size(), 1U);
  EXPECT_NE(rig.told[0].find("operands in slow are computed, not measured"), std::string::npos)
      << rig.told[0];
}

TEST(MeasurePlacements, MeasuresOnlyTierZeroWhereTheOtherIsADiskOrSomebodyElses) {
  Rig rig{kernel_of(2)};
  rig.machine = machine_with("");
  EXPECT_EQ(Rig::places(rig.measured()).size(), 1U);
  rig.machine = machine_with("fake:1MiB,blocks");
  rig.machine.tiers[1].addressable = false;
  EXPECT_EQ(Rig::places(rig.measured()).size(), 1U);
  EXPECT_TRUE(rig.told.empty());
}

TEST(MeasurePlacements, LeavesNothingBehindOnMappedMemory) {
  const TemporaryFolder folder;
  Rig rig{kernel_of(2)};
  rig.machine = machine_with("dax:" + (folder / "pmem") + ":1GiB,keep");
  rig.machine.tiers[1].granularity = 4_KiB;
  EXPECT_EQ(Rig::places(rig.measured()).size(), 4U);
  EXPECT_TRUE(rig.told.empty()) << rig.told.front();
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(MeasurePlacements, RefusesBudgetsThatDoNotAgree) {
  const Graph graph = kernel_of(2);
  MeasureOptions options{1, kBudget};
  options.tier_budgets = {kBudget};
  EXPECT_THROW(static_cast<void>(measure(graph, machine_with(kEmulated), options)), std::logic_error);
  options.tier_budgets = {kBudget, kBudget};
  EXPECT_THROW(static_cast<void>(measure(graph, machine_with(kEmulated), options)), std::logic_error);
}

}  // namespace
}  // namespace terrace

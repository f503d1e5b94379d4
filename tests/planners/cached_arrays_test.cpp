// SPDX-License-Identifier: Apache-2.0
// What the modes of CachedArrays do on steps where it can be said beforehand, and that their plans are what
// the manager did.
#include <gtest/gtest.h>

#include "planners/baseline_rig.hpp"
#include "planners/baselines/recorded_policy.hpp"
#include "support/random_graph.hpp"
#include "support/random_machine.hpp"
#include "terrace/lifetimes.hpp"
#include "terrace/verify.hpp"

namespace terrace {
namespace {

using Names = std::set<std::string>;
constexpr double kRate = 100 * static_cast<double>(kMega);

Bytes copied_bytes(const Graph& graph, const Plan& plan) {
  Bytes bytes;
  for (const Instruction& instruction : plan.instructions) {
    const auto* copy = std::get_if<Copy>(&instruction);
    if (copy == nullptr) continue;
    for (const TensorId tensor : copy->tensors) bytes += graph[tensor].bytes;
  }
  return bytes;
}

/// In order, begin with the one a tensor has when the step begins.
std::vector<TierId> tiers_of_regions(const Plan& plan, TensorId tensor) {
  std::vector<TierId> tiers;
  for (const Alloc& region : plan.start) {
    if (region.tensor == tensor) tiers.push_back(region.tier);
  }
  for (const Instruction& instruction : plan.instructions) {
    const auto* alloc = std::get_if<Alloc>(&instruction);
    if (alloc != nullptr && alloc->tensor == tensor) tiers.push_back(alloc->tier);
  }
  return tiers;
}

/// An input and a tensor are dead when another wants their room.
Graph with_dead_tensors() {
  RigGraph rig;
  const TensorId x = rig.tensor("x", 64, TensorKind::input);
  const TensorId a = rig.tensor("a", kMega, TensorKind::activation);
  const TensorId b = rig.tensor("b", kMega, TensorKind::activation);
  const TensorId c = rig.tensor("c", kMega, TensorKind::activation);
  const TensorId y = rig.tensor("y", 64, TensorKind::activation);
  rig.kernel("one", {x}, {a}, Phase::backward, 1);
  rig.kernel("two", {a}, {b}, Phase::backward, 1);
  rig.kernel("three", {b}, {c}, Phase::backward, 1);
  rig.kernel("four", {c}, {y}, Phase::backward, 1);
  rig.graph.results = {y};
  return rig.graph;
}

TEST(CachedArrays, WritesTheDeadToSlowMemoryUnlessTheyLeaveAtOnce) {
  const Planned step(with_dead_tensors(), rig_machine(kRate, true));
  const std::uint64_t fast = 2 * kMega + 4096;
  const auto late = make_plan("ca-l", step.request(fast)), early = make_plan("ca-lm", step.request(fast));
  ASSERT_TRUE(late.ok() && early.ok());
  EXPECT_EQ(copied(step, *late, {0}), (Names{"a", "x"}));
  EXPECT_EQ(copied(step, *early, {0}), Names{});
  EXPECT_LT(copied_bytes(step.graph, *early), copied_bytes(step.graph, *late));
}

/// Reads what has to leave in between.
Graph with_a_late_read() {
  RigGraph rig;
  const TensorId x = rig.tensor("x", 64, TensorKind::input);
  const TensorId a = rig.tensor("a", kMega, TensorKind::activation);
  const TensorId b = rig.tensor("b", kMega, TensorKind::activation);
  const TensorId c = rig.tensor("c", kMega, TensorKind::activation);
  const TensorId y = rig.tensor("y", 64, TensorKind::activation);
  rig.kernel("one", {x}, {a}, Phase::forward, 1);
  rig.kernel("two", {x}, {b}, Phase::forward, 1);
  rig.kernel("three", {b}, {c}, Phase::forward, 1);
  rig.kernel("four", {c}, {y}, Phase::backward, 1);
  rig.kernel("five", {a}, {y}, Phase::backward, 1);
  rig.graph.results = {y};
  return rig.graph;
}

TEST(CachedArrays, BringsWhatIsOnlyReadWhereItPrefetches) {
  const Planned step(with_a_late_read(), rig_machine(kRate, true));
  const std::uint64_t fast = 2 * kMega + 4096;
  const auto stays = make_plan("ca-lm", step.request(fast)), comes = make_plan("ca-lmp", step.request(fast));
  ASSERT_TRUE(stays.ok() && comes.ok());
  EXPECT_EQ(copied(step, *stays, {0}), Names{"a"});
  EXPECT_EQ(copied(step, *stays, {1}), Names{});
  EXPECT_EQ(copied(step, *comes, {1}), Names{"a"});
}

TEST(CachedArrays, BringsWhatKernelsCannotUseInPlaceInAnyMode) {
  const Planned step(with_a_late_read(), rig_machine(kRate, false));
  const auto plan = make_plan("ca-lm", step.request(2 * kMega + 4096));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(copied(step, *plan, {1}), Names{"a"});
}

TEST(CachedArrays, MakesTensorsInSlowMemoryFirstWithoutL) {
  const Planned step(with_dead_tensors(), rig_machine(kRate, true));
  const TensorId a = find_tensor(step.graph, "a");
  const auto none = make_plan("ca-none", step.request(8 * kMega)),
             local = make_plan("ca-l", step.request(8 * kMega));
  ASSERT_TRUE(none.ok() && local.ok());
  EXPECT_EQ(tiers_of_regions(*none, a), (std::vector<TierId>{{1}, {0}}));
  EXPECT_EQ(tiers_of_regions(*local, a), (std::vector<TierId>{{0}}));
  EXPECT_EQ(copied_bytes(step.graph, *none), Bytes{}) << "it holds nothing yet";
}

/// A weight is read first and updated last. In between it leaves, and the result stays where it was.
Graph with_a_weight() {
  RigGraph rig;
  const TensorId x = rig.tensor("x", 64, TensorKind::input);
  const TensorId w = rig.tensor("w", kMega, TensorKind::weight, true);
  const TensorId a = rig.tensor("a", kMega, TensorKind::activation);
  const TensorId b = rig.tensor("b", kMega / 2, TensorKind::activation);
  const TensorId y = rig.tensor("y", kMega / 4, TensorKind::activation);
  rig.kernel("one", {x, w}, {a}, Phase::forward, 1);
  rig.kernel("two", {a}, {b}, Phase::backward, 1);
  rig.kernel("three", {b}, {y}, Phase::backward, 1);
  rig.kernel("four", {w, y}, {w}, Phase::update, 1);
  rig.graph.results = {y};
  return rig.graph;
}

TEST(CachedArrays, KeepsAWeightInFastMemoryFromStepToStepWhereItStays) {
  const Planned step(with_a_weight(), rig_machine(kRate, false));
  const auto plan = make_plan("ca-lm", step.request(4 * kMega));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(tiers_of_regions(*plan, find_tensor(step.graph, "w")), (std::vector<TierId>{{0}}));
  EXPECT_EQ(copied_bytes(step.graph, *plan), Bytes{});
}

TEST(CachedArrays, BringsAWeightBackToWhereTheStepBegins) {
  const Planned step(with_a_weight(), rig_machine(kRate, false));
  const StepUses uses(step.graph);
  const PlanRequest request = step.request(2 * kMega + 4096);
  const auto recorded = record_policy(request, uses, "LM", "ca-lm");
  ASSERT_TRUE(recorded.ok()) << recorded.error().message;
  EXPECT_EQ(tiers_of_regions(recorded->draft.plan, find_tensor(step.graph, "w")),
            (std::vector<TierId>{{1}, {0}, {0}}));
  EXPECT_EQ(recorded->managed, Bytes{2 * kMega}) << "it comes twice, and leaves as it came";
  EXPECT_EQ(recorded->brought, Bytes{kMega}) << "the update is written home";
}

TEST(CachedArrays, MakesTheSamePlanAgain) {
  const Planned step(rig_chain(12), rig_machine(kRate, true));
  for (const char* name : {"ca-none", "ca-l", "ca-lm", "ca-lmp"}) {
    const auto once = make_plan(name, step.request(5 * kMega)),
               again = make_plan(name, step.request(5 * kMega));
    ASSERT_TRUE(once.ok() && again.ok()) << name;
    EXPECT_TRUE(*once == *again) << name;
    EXPECT_TRUE(verify(step.graph, step.machine, *once).ok()) << name;
  }
}

/// Random steps in two fifths of what they would use.
struct Tight {
  Graph graph;
  Machine machine;
  Profile profile;
  std::vector<Bytes> budget;

  explicit Tight(std::uint64_t seed) {
    RandomGraphOptions shape;
    shape.kernels = 40;
    graph = random_graph(shape, seed);
    machine = random_machine(seed);
    profile = estimate(graph, machine);
    for (const MachineTier& tier : machine.tiers) budget.push_back(tier.capacity);
    budget[0] =
        std::max(least_budget(graph, machine).bytes, Bytes{Lifetimes(graph).peak_bytes().count * 2 / 5});
  }
  PlanRequest request() const { return {graph, machine, profile, budget, 1, {}}; }
};

constexpr std::uint64_t kSteps = 60;

TEST(RecordedPolicy, MovesWhatTheManagerCounts) {
  for (const char* policy : {"none", "L", "LM", "LMP", "async-LMP", "lru"}) {
    Bytes managed, undefined, brought;
    for (std::uint64_t seed = 0; seed < kSteps; ++seed) {
      const Tight step(seed);
      const PlanRequest request = step.request();
      const auto recorded = record_policy(request, StepUses(step.graph), policy, policy);
      if (!recorded) continue;
      EXPECT_EQ(copied_bytes(step.graph, recorded->draft.plan), recorded->copied())
          << policy << ", case " << seed;
      managed += recorded->managed;
      undefined += recorded->undefined;
      brought += recorded->brought;
    }
    EXPECT_GT(managed, Bytes{}) << policy;
    EXPECT_GT(brought, Bytes{}) << policy;
    EXPECT_TRUE(std::string_view(policy) != "none" || undefined > Bytes{});
  }
}

TEST(RecordedPolicy, FindsRoomInTwoFifthsOfWhatAStepWouldUse) {
  for (const char* policy : {"none", "L", "LM", "LMP"}) {
    std::uint64_t recorded = 0;
    std::string reasons;
    for (std::uint64_t seed = 0; seed < kSteps; ++seed) {
      const Tight step(seed);
      const PlanRequest request = step.request();
      auto recording = record_policy(request, StepUses(step.graph), policy, policy);
      if (!recording) {
        reasons += "\n" + std::to_string(seed) + ": " + recording.error().message;
        continue;
      }
      ++recorded;
      Plan& plan = recording->draft.plan;
      plan.budget = recording->draft.needed;
      const auto found = violations(step.graph, step.machine, plan);
      ASSERT_TRUE(found.empty()) << policy << ", case " << seed << ": "
                                 << to_text(found[0], step.graph, step.machine, plan);
    }
    EXPECT_EQ(recorded, kSteps) << policy << reasons;
  }
}

}  // namespace
}  // namespace terrace

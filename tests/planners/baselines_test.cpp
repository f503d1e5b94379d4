// SPDX-License-Identifier: Apache-2.0
// What makes each baseline the one it is named after.
#include <gtest/gtest.h>

#include <algorithm>

#include "planners/baseline_rig.hpp"
#include "planners/baselines/memory_mode.hpp"
#include "terrace/models.hpp"
#include "terrace/simulate.hpp"

namespace terrace {
namespace {

using Names = std::set<std::string>;
constexpr double kFastLink = 100 * static_cast<double>(kMega), kSlowLink = 0.1 * static_cast<double>(kMega);

/// The tier a tensor has its first region in.
TierId first_tier(const Plan& plan, TensorId tensor) {
  for (const Alloc& region : plan.start) {
    if (region.tensor == tensor) return region.tier;
  }
  for (const Instruction& instruction : plan.instructions) {
    const auto* alloc = std::get_if<Alloc>(&instruction);
    if (alloc != nullptr && alloc->tensor == tensor) return alloc->tier;
  }
  return {};
}

TEST(AllSlow, LeavesFastMemoryEmpty) {
  const Planned step(rig_chain(4), rig_machine(kFastLink, true));
  const auto plan = make_plan("all-slow", step.request(8 * kMega));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->budget[0].count, 0U);
  EXPECT_GT(plan->budget[1].count, 0U);
}

TEST(AllSlow, SaysWhereKernelsCanUseNoSlowerTier) {
  const Planned step(rig_chain(4), rig_machine(kFastLink, false));
  const auto plan = make_plan("all-slow", step.request(8 * kMega));
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().message,
            "rig has no slower tier that kernels can use in place: take another planner");
}

TEST(FirstTouch, FillsFastMemoryInOrderAndNeverCopies) {
  const Planned step(rig_chain(6), rig_machine(kFastLink, true));
  const auto plan = make_plan("first-touch", step.request(4 * kMega + 4096));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_TRUE(copied(step, *plan, {0}).empty());
  EXPECT_TRUE(copied(step, *plan, {1}).empty());
  for (const char* early : {"x", "a1", "a2", "a3"}) {
    EXPECT_EQ(first_tier(*plan, find_tensor(step.graph, early)), TierId{0}) << early;
  }
  for (const char* late : {"a4", "a5", "a6"}) {
    EXPECT_EQ(first_tier(*plan, find_tensor(step.graph, late)), TierId{1}) << late;
  }
}

TEST(FirstTouch, TakesWhatTheDeadLeave) {
  const Planned step(rig_chain(4), rig_machine(kFastLink, true));
  const auto plan = make_plan("first-touch", step.request(5 * kMega + 4096));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(first_tier(*plan, find_tensor(step.graph, "d3")), TierId{1});  // all five are live
  EXPECT_EQ(first_tier(*plan, find_tensor(step.graph, "d2")), TierId{0});  // a4 is dead
}

TEST(FirstTouch, RefusesWhereOnlyFastMemoryCanBeUsedAndIsFull) {
  const Planned step(rig_chain(6), rig_machine(kFastLink, false));
  EXPECT_TRUE(make_plan("first-touch", step.request(9 * kMega)).ok());
  EXPECT_FALSE(make_plan("first-touch", step.request(4 * kMega)).ok());
}

TEST(MemoryMode, HitsEverythingWhereTheStepFits) {
  const Planned step(rig_chain(4), rig_machine(kSlowLink, true));
  const auto mode = predict_memory_mode(step.request(64 * kMega));
  ASSERT_TRUE(mode.ok()) << mode.error().message;
  EXPECT_EQ(mode->misses.count, 0U);
  EXPECT_EQ(mode->written_back.count, 0U);
  EXPECT_DOUBLE_EQ(mode->step.count(), 8);
}

TEST(MemoryMode, PaysForEveryMissAndForWhatItDrivesOut) {
  const Planned step(rig_chain(4), rig_machine(kFastLink, true));
  const auto mode = predict_memory_mode(step.request(3 * kMega));
  ASSERT_TRUE(mode.ok()) << mode.error().message;
  EXPECT_GT(mode->misses.count, 0U);
  EXPECT_GT(mode->written_back.count, 0U);
  EXPECT_LE(mode->written_back, mode->misses);
  // Two operands of each kernel forward, three of each backward, all but the result of a megabyte.
  EXPECT_EQ((mode->hits + mode->misses) / Bytes{kMega}, 19U);
  const double paid = static_cast<double>((mode->misses + mode->written_back).count) / kFastLink;
  EXPECT_NEAR(mode->step.count(), 8 + paid, 1e-9);
}

TEST(Vdnn, MovesWhatConvolutionsReadAndNothingElse) {
  const Planned step(build_model("resnet32", {.batch = 16}).value(), rig_machine(1e10, false));
  const auto all = make_plan("all-fast", step.request(std::uint64_t{8} << 30));
  ASSERT_TRUE(all.ok()) << all.error().message;
  const auto plan = make_plan("vdnn", step.request(all->budget[0].count * 4 / 5));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  Names read;
  for (const Kernel& kernel : step.graph.kernels) {
    if (operation_of(kernel) == Operation::conv2d) read.insert(step.graph[kernel.inputs[0].tensor].name);
  }
  const Names out = copied(step, *plan, {0});
  EXPECT_FALSE(out.empty());
  for (const std::string& name : out) EXPECT_EQ(read.count(name), 1U) << name;
  EXPECT_EQ(copied(step, *plan, {1}), out);
}

TEST(Vdnn, NamesTheBytesMissing) {
  const Planned step(build_model("vgg16", {.batch = 1}).value(), rig_machine(1e10, false));
  const auto plan = make_plan("vdnn", step.request(least_budget(step.graph, step.machine).bytes.count));
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().message.find("are missing"), std::string::npos) << plan.error().message;
}

TEST(L2l, HoldsOneLayerAtATimeWhateverFits) {
  const Planned step(rig_chain(8), rig_machine(kFastLink, false));
  const auto plan = make_plan("l2l", step.request(64 * kMega));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  // A layer of the backward pass has three tensors of a megabyte; x is there from the start.
  EXPECT_LE(plan->budget[0].count, 5 * kMega);
  Names between;  // what one layer makes and a later one than the next reads
  for (int i = 1; i <= 6; ++i) between.insert("a" + std::to_string(i));
  const Names out = copied(step, *plan, {0});
  for (const std::string& name : between) EXPECT_EQ(out.count(name), 1U) << name;
  EXPECT_GT(plan->prediction.exposed.count(), 0) << "a layer waits for what it uses";
}

TEST(Capuchin, SwapsUnseenWhereTheLinkIsFast) {
  const Planned step(rig_chain(8), rig_machine(kFastLink, false));
  const auto plan = make_plan("capuchin", step.request(6 * kMega));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(runs(*plan), step.graph.kernels.size());
  EXPECT_FALSE(copied(step, *plan, {0}).empty());
  EXPECT_NEAR(plan->prediction.step.count(), 16, 1e-6);
}

TEST(Capuchin, ComputesAgainWhereTheLinkIsSlow) {
  const Planned step(rig_chain(8), rig_machine(kSlowLink, false));
  const auto plan = make_plan("capuchin", step.request(7 * kMega));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_GT(runs(*plan), step.graph.kernels.size());
  EXPECT_LT(plan->prediction.step, make_plan("next-use", step.request(7 * kMega))->prediction.step);
}

TEST(SwapAdvisor, FindsTheSamePlanForTheSameSeed) {
  const Planned step(rig_chain(10), rig_machine(kMega, false));
  const auto one = make_plan("swapadvisor", step.request(6 * kMega, 4));
  const auto same = make_plan("swapadvisor", step.request(6 * kMega, 4));
  ASSERT_TRUE(one.ok() && same.ok());
  EXPECT_TRUE(*one == *same);
}

TEST(SwapAdvisor, ImprovesOnItsStart) {
  const Planned step(rig_chain(10), rig_machine(kMega, false));
  PlanRequest request = step.request(6 * kMega);
  const auto found = make_plan("swapadvisor", request);
  request.options["generations"] = "0";
  const auto start = make_plan("swapadvisor", request);
  ASSERT_TRUE(found.ok() && start.ok());
  EXPECT_LT(found->prediction.step, start->prediction.step);
}

TEST(SwapAdvisor, RefusesGenerationsThatAreNoNumber) {
  const Planned step(rig_chain(3), rig_machine(kMega, false));
  PlanRequest request = step.request(8 * kMega);
  request.options["generations"] = "many";
  const auto plan = make_plan("swapadvisor", request);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().message, "generations is a number such as 12, and 'many' is given");
}

/// A token that every kernel reads and writes, in a step that does not fit.
TEST(Tokens, AreNotCarried) {
  Graph graph = rig_chain(8);
  Tensor token;
  token.name = "generator";
  token.shape = {0};
  token.type = DataType::u8;
  token.kind = TensorKind::token;
  token.persistent = true;
  const TensorId id{static_cast<std::uint32_t>(graph.tensors.size())};
  graph.tensors.push_back(token);
  for (Kernel& kernel : graph.kernels) {
    kernel.inputs.push_back({id, {0}, Bytes{}, {}});
    kernel.outputs.push_back({id, {0}, Bytes{}, {}});
  }
  const Planned step(graph, rig_machine(kFastLink, false));
  for (const char* planner : {"prefetch", "best", "sentinel+"}) {
    SCOPED_TRACE(planner);
    const auto plan = make_plan(planner, step.request(5 * kMega));
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    int copies = 0;
    for (const Instruction& one : plan->instructions) {
      const auto* copy = std::get_if<Copy>(&one);
      if (copy == nullptr) continue;
      ++copies;
      EXPECT_EQ(std::count(copy->tensors.begin(), copy->tensors.end(), id), 0);
    }
    EXPECT_GT(copies, 0);
  }
}

}  // namespace
}  // namespace terrace

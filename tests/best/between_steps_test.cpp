// SPDX-License-Identifier: Apache-2.0
// Where weights are between two steps that they do not spend in fast memory as a whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

#include "planners/baseline_rig.hpp"
#include "planners/best/guided_planning.hpp"
#include "terrace/simulate.hpp"
#include "terrace/verify.hpp"

namespace terrace::best {
namespace {

/// `w` is read by the first kernel and changed by the last one; in between there is no room for it. A
/// transfer of it takes a second, as each kernel does.
Graph used_at_both_ends() {
  RigGraph rig;
  const TensorId x = rig.tensor("x", 64, TensorKind::input);
  const TensorId w = rig.tensor("w", kMega, TensorKind::weight, true);
  const TensorId a = rig.tensor("a", kMega, TensorKind::activation);
  const TensorId r = rig.tensor("r", 64, TensorKind::activation);
  rig.kernel("read w", {x, w}, {r}, Phase::forward, 1);
  rig.kernel("wait", {r}, {r}, Phase::forward, 1);
  rig.kernel("make a", {r}, {a}, Phase::forward, 1);
  rig.kernel("read a", {a, r}, {r}, Phase::backward, 1);
  rig.kernel("wait again", {r}, {r}, Phase::backward, 1);
  rig.kernel("change w", {r, w}, {w}, Phase::backward, 1);
  rig.graph.results = {r};
  return rig.graph;
}

TensorId named(const Graph& graph, const char* name) {
  const auto found = std::find_if(graph.tensors.begin(), graph.tensors.end(),
                                  [&](const Tensor& tensor) { return tensor.name == name; });
  return {static_cast<std::uint32_t>(found - graph.tensors.begin())};
}

struct Made {
  Plan plan;
  double step = 0;
  TierId start;        ///< of `w`
  bool frees = false;  ///< `w` leaves fast memory within the step
};

Made made(Between between) {
  const Planned planned(used_at_both_ends(), rig_machine(static_cast<double>(kMega), false));
  const PlanRequest request = planned.request(kMega + kMega / 2);
  GuidedPlanning::Recipe recipe;
  recipe.between = between;
  auto plan = GuidedPlanning(request).plan(recipe);
  EXPECT_TRUE(plan.ok());
  if (!plan) return {};
  EXPECT_TRUE(violations(planned.graph, planned.machine, *plan).empty());
  Made result{
      *plan, simulate(planned.graph, planned.machine, planned.profile, *plan).step.count(), {}, false};
  EXPECT_LE(step_bound(request).moving.count(), result.step) << "the bound knows of it";
  const TensorId w = named(planned.graph, "w");
  for (const Alloc& region : plan->start) {
    if (region.tensor == w) result.start = region.tier;
  }
  for (const Instruction& one : plan->instructions) {
    const auto* free = std::get_if<Free>(&one);
    result.frees = result.frees || (free && free->tensor == w && free->tier == TierId{0});
  }
  return result;
}

TEST(BetweenSteps, AWeightThatTheFirstAndLastKernelsUseRemainsInFastMemory) {
  const Made returns = made(Between::as_placed), rests = made(Between::in_slow);
  EXPECT_EQ(returns.start, TierId{0});
  EXPECT_TRUE(returns.frees) << "it leaves in between";
  EXPECT_NEAR(returns.step, 6, 1e-6) << "both of its transfers are hidden";
  EXPECT_EQ(rests.start, TierId{1});
  EXPECT_NEAR(rests.step, 6 + 2, 1e-6)
      << "the first kernel waits for it, and the step's end for its way back";
}

}  // namespace
}  // namespace terrace::best

// What leaves fast memory is written to its home while kernels still read it.
#include <gtest/gtest.h>

#include "planners/baseline_rig.hpp"
#include "planners/best/guided_planning.hpp"
#include "terrace/simulate.hpp"
#include "terrace/verify.hpp"

namespace terrace::best {
namespace {

/// `a` is made in three seconds and read, has to make way for `b`, and is read again. Its transfers take a
/// second each way, as any other kernel does.
Graph makes_way(bool read_is_written) {
  RigGraph rig;
  const TensorId x = rig.tensor("x", 64, TensorKind::input);
  const TensorId a = rig.tensor("a", kMega, TensorKind::activation);
  const TensorId b = rig.tensor("b", kMega, TensorKind::activation);
  const TensorId r = rig.tensor("r", 64, TensorKind::activation);
  rig.kernel("make a", {x}, {a}, Phase::forward, 3);
  if (read_is_written) {
    rig.kernel("change a", {a, x}, {a}, Phase::forward, 1);
  } else {
    rig.kernel("read a", {a}, {r}, Phase::forward, 1);
  }
  rig.kernel("make b", {x}, {b}, Phase::forward, 1);
  rig.kernel("read b", {b}, {r}, Phase::backward, 1);
  rig.kernel("read a again", {a, r}, {r}, Phase::backward, 1);
  rig.graph.results = {r};
  return rig.graph;
}

double step_of(const Graph& graph) {
  Machine machine = rig_machine(static_cast<double>(kMega), true);
  machine.tiers[1].read = machine.tiers[1].write = {0.1 * kMega};  // so that no kernel wants to use it there
  const Planned planned(graph, machine);
  const PlanRequest request = planned.request(kMega + kMega / 2);
  const auto plan = GuidedPlanning(request).plan({});
  EXPECT_TRUE(plan.ok());
  if (!plan) return 0;
  EXPECT_TRUE(violations(planned.graph, planned.machine, *plan).empty());
  const Seconds step = simulate(planned.graph, planned.machine, planned.profile, *plan).step;
  EXPECT_LE(step_bound(request).moving, step) << "the bound knows of it";
  return step.count();
}

TEST(Stores, AreHiddenBesideTheKernelsThatStillRead) {
  EXPECT_NEAR(step_of(makes_way(false)), 7 + 1, 1e-6) << "only coming back is waited for";
}

TEST(Stores, WaitForTheLastWrite) {
  EXPECT_NEAR(step_of(makes_way(true)), 7 + 2, 1e-6) << "what a kernel changes cannot leave beside it";
}

}  // namespace
}  // namespace terrace::best

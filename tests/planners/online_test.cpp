// SPDX-License-Identifier: Apache-2.0
// What a planner that decides as the step goes on does, on a step where it can be said beforehand.
#include <gtest/gtest.h>

#include "planners/baseline_rig.hpp"

namespace terrace {
namespace {

using Names = std::set<std::string>;
constexpr double kRate = 100 * static_cast<double>(kMega);

Bytes moved(const Plan& plan, TierId from) {
  Bytes bytes{};
  for (const Traffic& traffic : plan.prediction.moved) {
    if (traffic.from == from) bytes += traffic.bytes;
  }
  return bytes;
}

/// `cold` is first to find room in fast memory and is used once; `hot` comes later and is used again and
/// again.
Graph with_a_hot_tensor() {
  RigGraph rig;
  const TensorId x = rig.tensor("x", 64, TensorKind::input);
  const TensorId cold = rig.tensor("cold", kMega, TensorKind::activation);
  const TensorId hot = rig.tensor("hot", kMega, TensorKind::activation);
  const TensorId y = rig.tensor("y", 64, TensorKind::activation);
  rig.kernel("make cold", {x}, {cold}, Phase::forward, 1);
  rig.kernel("make hot", {x}, {hot}, Phase::forward, 1);
  for (const char* name : {"one", "two", "three", "four"}) rig.kernel(name, {hot}, {y}, Phase::forward, 1);
  rig.kernel("five", {cold, y}, {y}, Phase::backward, 1);
  rig.graph.results = {y};
  return rig.graph;
}

TEST(ActiveList, ExchangesWhatIsUsedAgainWithWhatIsNot) {
  const Planned step(with_a_hot_tensor(), rig_machine(kRate, true));
  const auto plan = make_plan("active-list", step.request(kMega + 4096));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(copied(step, *plan, {0}), Names{"cold"});
  EXPECT_EQ(copied(step, *plan, {1}), Names{"hot"});
  EXPECT_EQ(moved(*plan, {1}), Bytes{kMega});
}

}  // namespace
}  // namespace terrace

// What the recorded online policies do on steps where it can be said beforehand.
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

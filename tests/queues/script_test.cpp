// SPDX-License-Identifier: Apache-2.0
// What is issued, and when: neighbours travel as one copy, nothing waits that need not, the host issues
// ahead.
#include "queues/rig.hpp"

namespace terrace {
namespace {

/// `count` inputs of 64 KiB side by side, all saved to pinned memory and read by one kernel at the end.
Planned neighbours(std::uint32_t count, bool in_one_instruction) {
  constexpr std::uint64_t kSize = 64 << 10;
  Graph graph;
  graph.name = "neighbours";
  graph.layers = {"all"};
  Kernel kernel;
  kernel.name = "sum";
  kernel.operation = "random";
  const auto tensor = [&](const std::string& name, TensorKind kind) {
    Tensor made;
    made.name = name;
    made.shape = {static_cast<std::int64_t>(kSize)};
    made.type = DataType::u8;
    made.kind = kind;
    made.bytes = Bytes{kSize};
    graph.tensors.push_back(made);
    return Operand{{static_cast<std::uint32_t>(graph.tensors.size() - 1)}, made.shape, made.bytes, {}};
  };
  for (std::uint32_t i = 0; i < count; ++i)
    kernel.inputs.push_back(tensor("x" + std::to_string(i), TensorKind::input));
  kernel.outputs.push_back(tensor("y", TensorKind::activation));
  graph.kernels.push_back(kernel);
  graph.results = {{count}};
  const Machine machine = device_machine({"pinned"});
  Plan plan;
  plan.graph = fingerprint(graph);
  plan.machine = fingerprint(machine);
  plan.budget = {Bytes{kSize * (count + 1)}, Bytes{kSize * count}};
  std::vector<TensorId> all;
  for (std::uint32_t i = 0; i < count; ++i) {
    plan.start.push_back({{i}, {0}, i * kSize});
    plan.instructions.push_back(Alloc{{i}, {1}, i * kSize});
    all.push_back({i});
    if (!in_one_instruction) plan.instructions.push_back(Copy{{{i}}, {0}, {1}, i});
  }
  if (in_one_instruction) plan.instructions.push_back(Copy{all, {0}, {1}, 0});
  for (std::uint32_t i = 0; i < (in_one_instruction ? 1 : count); ++i) plan.instructions.push_back(Wait{i});
  for (std::uint32_t i = 0; i < count; ++i) plan.instructions.push_back(Free{{i}, {1}});
  plan.instructions.push_back(Alloc{{count}, {0}, count * kSize});
  plan.instructions.push_back(Run{{0}, 0, std::vector<TierId>(count + 1, TierId{0})});
  VerifiedPlan verified = verify(graph, machine, std::move(plan)).value();
  return {std::move(graph), machine, std::move(verified)};
}

TEST(QueueScript, NeighboursTravelAsOneCopy) {
  for (const bool in_one_instruction : {true, false}) {
    const Planned planned = neighbours(16, in_one_instruction);
    OnDevice device(planned, std::make_shared<FakeDevice>(Schedule::lazy));
    device.tiers.fill(0, true);
    const std::uint64_t before = device.fake_device->copies();
    device.runner.step({});
    EXPECT_EQ(device.fake_device->copies() - before, 1u) << in_one_instruction;
    EXPECT_EQ(device.runner.script().actions.size(), 2u);
  }
}

TEST(QueueScript, WaitsAreLeftOutWhereOthersImplyThem) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Planned planned = random_planned(seed);
    OnDevice device(planned, std::make_shared<FakeDevice>(Schedule::eager));
    const QueueScript& script = device.runner.script();
    for (const QueueAction& action : script.actions) {
      std::vector<bool> lanes(script.lanes.size());
      for (const std::uint32_t wait : action.waits) {
        const QueueAction& before = script.actions[wait];
        EXPECT_NE(before.lane, action.lane) << "a lane is in order by itself";
        EXPECT_FALSE(lanes[before.lane]) << "the later one of a lane is enough";
        EXPECT_TRUE(before.is_waited_for);
        lanes[before.lane] = true;
      }
    }
  }
}

TEST(QueueRunner, TheHostIssuesAWholeStepAhead) {
  const Planned planned = neighbours(4, true);
  auto fake = std::make_shared<FakeDevice>(Schedule::lazy);
  int ran = 0, ran_when_issued = -1;
  const auto backend = foreign_device_backend({{"random", [&](const ForeignLaunch& launch) {
                                                  ran_when_issued = ran;
                                                  fake->launch(launch.queue, {}, {}, [&] { ++ran; });
                                                }}});
  OnDevice device(planned, fake);
  const Kernels kernels = backend->instantiate(planned.graph);
  QueueRunner runner({planned.graph, planned.machine, planned.plan, device.tiers.tiers(), {&kernels}});
  runner.step({});
  EXPECT_EQ(ran_when_issued, 0) << "nothing had run when the last kernel was issued";
  EXPECT_EQ(ran, 1) << "all has when the step ends";
}

TEST(QueueRunner, WhatACallbackThrowsEndsTheStep) {
  const Planned planned = neighbours(4, true);
  auto fake = std::make_shared<FakeDevice>(Schedule::lazy);
  const auto backend = foreign_device_backend(
      {{"random", [](const ForeignLaunch&) -> void { throw std::runtime_error("no such kernel"); }}});
  OnDevice device(planned, fake);
  const Kernels kernels = backend->instantiate(planned.graph);
  QueueRunner runner({planned.graph, planned.machine, planned.plan, device.tiers.tiers(), {&kernels}});
  EXPECT_THROW(runner.step({}), std::runtime_error);
  device.tiers.fill(0, true);
  device.runner.step({});
  EXPECT_EQ(device.violations(), std::vector<std::string>{});
}

}  // namespace
}  // namespace terrace

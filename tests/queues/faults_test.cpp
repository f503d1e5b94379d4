// SPDX-License-Identifier: Apache-2.0
// What goes wrong in a step ends it with one sentence, leaves nothing under way, and the next step is whole;
// an event that is missing is seen.
#include "queues/rig.hpp"
#include "support/long_tests.hpp"

namespace terrace {
namespace {

Planned chain(const std::vector<std::string>& slower, std::uint64_t seed = 5) {
  return planned(random_graph(small_graph(), seed), device_machine(slower), seed);
}

// Four kernels, each of which reads what the one before it wrote.
Graph line_graph() {
  Graph line;
  line.name = "line";
  line.layers = {"all"};
  const auto add_tensor = [&](const std::string& name, TensorKind kind) {
    Tensor made;
    made.name = name;
    made.shape = {1000};
    made.type = DataType::u8;
    made.kind = kind;
    made.bytes = Bytes{1000};
    line.tensors.push_back(made);
  };
  add_tensor("x", TensorKind::input);
  for (std::uint32_t i = 0; i < 4; ++i) {
    add_tensor("y" + std::to_string(i), TensorKind::activation);
    Kernel kernel;
    kernel.name = "k" + std::to_string(i);
    kernel.operation = "random";
    kernel.inputs = {{{i}, {1000}, Bytes{1000}, {}}};
    kernel.outputs = {{{i + 1}, {1000}, Bytes{1000}, {}}};
    line.kernels.push_back(kernel);
  }
  line.results = {{4}};
  return line;
}

// Each output goes out to pinned memory, something else takes its place on the device, and it comes back to
// another place: everything depends on what was just before it.
Planned there_and_back() {
  Graph graph = line_graph();
  Machine machine = device_machine({"pinned"});
  Plan plan;
  plan.planner = "by hand";
  plan.graph = fingerprint(graph);
  plan.machine = fingerprint(machine);
  plan.budget = {Bytes{8192}, Bytes{65536}};
  plan.start = {{{0}, {0}, 0}};
  std::uint32_t ticket = 0;
  std::vector<Instruction>& code = plan.instructions;
  code.push_back(Alloc{{1}, {0}, 1024});
  code.push_back(Run{{0}, 0, {{0}, {0}}});
  for (std::uint32_t i = 1; i < 4; ++i) {
    code.push_back(Alloc{{i}, {1}, 1024 * i});
    code.push_back(Copy{{{i}}, {0}, {1}, ticket});
    code.push_back(Wait{ticket++});
    code.push_back(Free{{i}, {0}});
    code.push_back(Alloc{{i}, {0}, i % 2 == 1 ? 2048U : 1024U});
    code.push_back(Copy{{{i}}, {1}, {0}, ticket});
    code.push_back(Wait{ticket++});
    code.push_back(Free{{i}, {1}});
    code.push_back(Alloc{{i + 1}, {0}, i % 2 == 1 ? 1024U : 2048U});
    code.push_back(Run{{i}, 0, {{0}, {0}}});
    code.push_back(Free{{i}, {0}});
  }
  VerifiedPlan verified = verify(graph, machine, std::move(plan)).value();
  return {std::move(graph), std::move(machine), std::move(verified)};
}

/// The sentence that the step ended with; empty where it did not fail.
std::string failure_of(OnDevice& device, std::uint64_t step) {
  try {
    device.runner.step({7, step, 0});
    return {};
  } catch (const EnvironmentError& error) {
    return error.what();
  }
}

void expect_a_whole_step(OnDevice& device, const Kept& expected, const std::string& after) {
  ASSERT_EQ(device.step(0, true), expected) << after;
}

TEST(QueueRunnerFaults, AnyCallThatFailsEndsTheStepWithItsPlace) {
  const Planned planned = chain({"pinned", "blocks"});
  const Kept expected = run_synchronously(planned, 1).front();
  for (const Schedule schedule : {Schedule::lazy, Schedule::random}) {
    OnDevice device(planned, std::make_shared<FakeDevice>(schedule, 3));
    const std::uint64_t before = device.fake_device->calls();
    expect_a_whole_step(device, expected, "nothing");
    const std::uint64_t calls = device.fake_device->calls() - before;
    std::uint64_t failed = 0;
    for (std::uint64_t nth = 1; nth <= calls; nth += few_or_all<std::uint64_t>(2, 1)) {
      device.tiers.fill(0, true);
      device.fake_device->fail_call(nth);
      const std::string sentence = failure_of(device, 0);
      device.fake_device->heal();
      if (!sentence.empty()) {
        ++failed;
        EXPECT_NE(sentence.find("the step on " + device.fake_device->name()), std::string::npos) << sentence;
        EXPECT_TRUE(sentence.find("instruction ") != std::string::npos ||
                    sentence.find("the end of the step") != std::string::npos)
            << sentence;
        EXPECT_NE(sentence.find("as scripted"), std::string::npos) << sentence;
      }
      expect_a_whole_step(device, expected, "call " + std::to_string(nth) + " failed: " + sentence);
    }
    EXPECT_GT(failed, 20u);
    EXPECT_EQ(device.violations(), std::vector<std::string>{});
  }
}

TEST(QueueRunnerFaults, ABundleThatFailsLeavesKernelsThatAreIssuedOneByOne) {
  const Planned planned = chain({"pinned"});
  const Kept expected = run_synchronously(planned, 1).front();
  OnDevice device(planned, std::make_shared<FakeDevice>(Schedule::random, 3));
  const auto all = [](std::uint32_t) { return true; };
  const std::uint64_t before = device.fake_device->calls();
  device.runner.bundle(all, {7, 0, 0});
  const std::uint64_t calls = device.fake_device->calls() - before;
  EXPECT_GT(calls, 5u);
  for (std::uint64_t nth = 1; nth <= calls; ++nth) {
    device.fake_device->fail_call(nth);
    EXPECT_THROW(device.runner.bundle(all, {7, 0, 0}), EnvironmentError) << nth;
    device.fake_device->heal();
    EXPECT_EQ(device.runner.bundles(), 0u);
    expect_a_whole_step(device, expected, "a bundle failed");
  }
  device.runner.bundle(all, {7, 0, 0});
  device.tiers.fill(0, true);
  device.fake_device->fail_run(3);
  EXPECT_NE(failure_of(device, 0).find("ended at instruction "), std::string::npos);
  device.fake_device->heal();
  expect_a_whole_step(device, expected, "a kernel of a bundle failed");
  EXPECT_EQ(device.violations(), std::vector<std::string>{});
}

TEST(QueueRunnerFaults, ALostDeviceNamesWhatWasUnderWay) {
  const Planned planned = chain({"pinned"});
  const Kept expected = run_synchronously(planned, 1).front();
  for (const Schedule schedule : {Schedule::lazy, Schedule::random}) {
    OnDevice device(planned, std::make_shared<FakeDevice>(schedule, 3), QueueMarks::everywhere);
    std::uint64_t nth = 1;
    for (;; ++nth) {
      device.tiers.fill(0, true);
      device.fake_device->fail_run(nth);
      const std::string sentence = failure_of(device, 0);
      if (sentence.empty()) break;
      EXPECT_NE(sentence.find("is lost"), std::string::npos) << sentence;
      EXPECT_NE(sentence.find("ended at instruction "), std::string::npos) << sentence;
      EXPECT_EQ(sentence.find("one of"), std::string::npos) << sentence;
      EXPECT_EQ(failure_of(device, 0).find("ended at"), sentence.find("ended at")) << "lost is lost";
      device.fake_device->heal();
      expect_a_whole_step(device, expected, sentence);
    }
    EXPECT_GT(nth, 15u);
    EXPECT_EQ(device.violations(), std::vector<std::string>{});
  }
}

// One kernel after the other on one queue: which of them failed is known exactly.
TEST(QueueRunnerFaults, ALostDeviceNamesTheKernelThatFailed) {
  RandomGraphOptions options = small_graph();
  options.kernels = 6;
  const Graph graph = random_graph(options, 2);
  const Machine machine = device_machine({"pinned"});
  Plan plan = random_plan(graph, machine, {Bytes{1 << 20}, Bytes{1 << 20}}, 2);
  plan.machine = fingerprint(machine);
  const Planned planned{graph, machine, verify(graph, machine, std::move(plan)).value()};
  OnDevice device(planned, std::make_shared<FakeDevice>(Schedule::lazy), QueueMarks::everywhere);
  std::vector<std::string> names;
  for (const QueueAction& action : device.runner.script().actions) {
    if (const auto* launch = std::get_if<QueueLaunch>(&action.what))
      names.push_back(graph.kernels[launch->kernel].name);
  }
  std::size_t named = 0;
  for (std::uint64_t nth = 1; nth <= device.runner.script().actions.size(); ++nth) {
    device.tiers.fill(0, true);
    device.fake_device->fail_run(nth);
    const std::string sentence = failure_of(device, 0);
    device.fake_device->heal();
    for (const std::string& name : names) named += sentence.find("(run " + name + " ") != std::string::npos;
  }
  EXPECT_GE(named, names.size());
}

TEST(QueueRunnerFaults, AFailedDiskEndsTheStepWithTheTransfer) {
  const Planned planned = chain({"pinned", "blocks"});
  const Kept expected = run_synchronously(planned, 1).front();
  for (const auto flags : {FakeDevice::Flags::offered, FakeDevice::Flags::refused}) {
    OnDevice device(planned, std::make_shared<FakeDevice>(Schedule::lazy, 3, flags));
    const std::uint64_t before = device.disk->operations();
    expect_a_whole_step(device, expected, "nothing");
    const std::uint64_t operations = device.disk->operations() - before;
    std::uint64_t failed = 0;
    for (std::uint64_t nth = 1; nth <= operations; nth += few_or_all<std::uint64_t>(3, 1)) {
      device.tiers.fill(0, true);
      device.disk->fail(nth, FakeTier::Fault::io_error);
      const std::string sentence = failure_of(device, 0);
      device.disk->heal();
      if (!sentence.empty()) {
        ++failed;
        EXPECT_NE(sentence.find("instruction "), std::string::npos) << sentence;
        EXPECT_NE(sentence.find("(copy "), std::string::npos) << sentence;
      }
      expect_a_whole_step(device, expected, sentence);
    }
    EXPECT_GT(failed, 2u);
    EXPECT_EQ(device.violations(), std::vector<std::string>{});
  }
}

TEST(QueueRunnerFaults, EveryForgottenEventIsSeenWhereAllOfThemMatter) {
  const Planned planned = there_and_back();
  const Kept expected = run_synchronously(planned, 1).front();
  for (const Schedule schedule : {Schedule::eager, Schedule::random, Schedule::lazy}) {
    std::uint64_t order = 0;
    for (std::uint64_t nth = 0; nth <= order; ++nth) {
      OnDevice device(planned, std::make_shared<FakeDevice>(schedule, nth));
      device.tiers.fill(0, true);
      const std::uint64_t before = device.fake_device->order_calls();
      if (nth > 0) device.fake_device->forget_call(nth);
      device.runner.step({7, 0, 0});
      order = device.fake_device->order_calls() - before;
      if (nth == 0) {
        EXPECT_GE(order, 18u) << "nine places where a queue waits for another";
        EXPECT_EQ(device.violations(), std::vector<std::string>{});
        EXPECT_EQ(device.tiers.kept(), expected);
      } else {
        EXPECT_FALSE(device.violations().empty()) << "call " << nth << " of " << order;
      }
    }
  }
}

// Of random plans not all events matter: another may imply the order, or the bytes may be apart.
TEST(QueueRunnerFaults, AForgottenEventIsSeenWhereverItMattered) {
  int seen = 0, wrong = 0;
  for (std::uint64_t seed = 0; seed < few_or_all<std::uint64_t>(8, 200); ++seed) {
    const Planned planned = random_planned(seed);
    const Kept expected = run_synchronously(planned, 1).front();
    std::uint64_t order = 1;
    for (std::uint64_t nth = 1; nth <= order; nth += few_or_all<std::uint64_t>(3, 1)) {
      OnDevice device(planned, std::make_shared<FakeDevice>(Schedule::lazy, nth));
      device.tiers.fill(0, true);
      const std::uint64_t before = device.fake_device->order_calls();
      device.fake_device->forget_call(nth);
      device.runner.step({7, 0, 0});
      order = device.fake_device->order_calls() - before;
      const bool other_bits = device.tiers.kept() != expected;
      const bool noted = !device.violations().empty();
      seen += noted || other_bits;
      wrong += other_bits;
    }
  }
  // Where a thread of the host waits, chance decides; the others are enough.
  EXPECT_GT(seen, 5);
  EXPECT_GT(wrong, 0) << "rubbish shows without anybody's clocks";
}

}  // namespace
}  // namespace terrace

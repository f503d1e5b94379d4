// SPDX-License-Identifier: Apache-2.0
// Plans for several engines on queues: the bits of the graph alone, whatever order lanes work in.
#include "queues/rig.hpp"
#include "support/long_tests.hpp"
#include "verify/lane_plans.hpp"

namespace terrace {
namespace {

/// A random plan for several engines, all on the device, with room for its granules; nothing where it is not
/// safe.
std::optional<Planned> random_lanes(std::uint64_t seed) {
  testing::LaneCase made = testing::RandomLanePlan(seed, 97, 2 + static_cast<std::uint32_t>(seed % 2)).run();
  Machine& machine = made.machine;
  machine.source = "tests";
  constexpr std::uint64_t kTimes = 4;  // as coarse as a device's granules
  for (MachineTier& tier : machine.tiers) tier.granularity = Bytes{64 * kTimes};
  machine.tiers[0].spec = "fake:1MiB,device";
  machine.tiers[1].spec = machine.is_reached({1}) || seed % 2 == 0 ? "pinned:1MiB" : "dram:1MiB";
  Plan& plan = made.plan;
  for (Bytes& budget : plan.budget) budget = budget * kTimes;
  for (Alloc& region : plan.start) region.offset *= kTimes;
  for (Instruction& one : plan.instructions) {
    if (auto* const alloc = std::get_if<Alloc>(&one)) alloc->offset *= kTimes;
  }
  plan.graph = fingerprint(made.graph);
  plan.machine = fingerprint(machine);
  auto verified = verify(made.graph, machine, std::move(plan));
  if (!verified) return std::nullopt;
  return Planned{std::move(made.graph), std::move(machine), *std::move(verified)};
}

void expect_plain_bits(const Planned& planned, const Kept& kept, const std::string& what) {
  const Kept plain = run_plainly(planned.graph);
  for (const auto& [place, bytes] : kept) ASSERT_EQ(bytes, plain.at({place.first, 0})) << what;
}

TEST(QueueLanes, RandomPlansOfSeveralEnginesGiveTheGraphsBits) {
  int safe = 0, beside = 0;
  for (std::uint64_t seed = 0; seed < few_or_all<std::uint64_t>(150, 5000); ++seed) {
    const auto planned = random_lanes(seed);
    if (!planned) continue;
    ++safe;
    for (const Instruction& one : planned->plan->instructions) {
      const auto* const run = std::get_if<terrace::Run>(&one);
      beside += run != nullptr && run->ticket.has_value();
    }
    const auto schedule = static_cast<Schedule>(seed % 3);
    OnDevice device(*planned, std::make_shared<FakeDevice>(schedule, seed));
    expect_plain_bits(*planned, device.step(0, true), "seed " + std::to_string(seed));
    ASSERT_EQ(device.violations(), std::vector<std::string>{}) << "seed " << seed;
  }
  EXPECT_GT(safe, 30);
  EXPECT_GT(beside, 30) << "kernels that nobody waits for at once";
}

/// A gradient goes to the host, the processor updates the weight there, and the weight comes back, while the
/// device computes something else.
Planned update_on_the_host(const std::string& slow) {
  constexpr std::uint64_t kSize = 1024;
  Graph graph;
  graph.name = "update on the host";
  graph.layers = {"all"};
  const auto add = [&](const std::string& name, TensorKind kind) {
    Tensor made;
    made.name = name;
    made.shape = {static_cast<std::int64_t>(kSize)};
    made.type = DataType::u8;
    made.kind = kind;
    made.persistent = kind == TensorKind::weight;
    made.bytes = Bytes{kSize};
    graph.tensors.push_back(made);
    return Operand{{static_cast<std::uint32_t>(graph.tensors.size() - 1)}, made.shape, made.bytes, {}};
  };
  const Operand x = add("x", TensorKind::input), w = add("w", TensorKind::weight),
                g = add("g", TensorKind::gradient), y = add("y", TensorKind::activation);
  const auto kernel = [&](const std::string& name, std::vector<Operand> in, Operand out) {
    Kernel made;
    made.name = name;
    made.operation = "random";
    made.inputs = std::move(in);
    made.outputs = {std::move(out)};
    graph.kernels.push_back(made);
  };
  kernel("backward", {x, w}, g);
  kernel("other", {x}, y);
  kernel("adam", {w, g}, w);
  graph.results = {{3}};
  Machine machine = device_machine({slow});
  machine.further_engines.push_back({{"cpu", 1, 1e9, {}}, {{1}}});
  Plan plan;
  plan.graph = fingerprint(graph);
  plan.machine = fingerprint(machine);
  plan.budget = {Bytes{16 * kSize}, Bytes{16 * kSize}};
  plan.start = {{{0}, {0}, 0}, {{1}, {0}, kSize}, {{1}, {1}, 0}};
  plan.instructions = {
      Alloc{{2}, {0}, 2 * kSize},
      Run{{0}, 0, {{0}, {0}, {0}}, {0}, 1, {}},
      Alloc{{2}, {1}, kSize},
      Copy{{{2}}, {0}, {1}, 2, {1}},
      Run{{2}, 0, {{1}, {1}, {1}}, {1}, 3, {2}},
      Alloc{{3}, {0}, 3 * kSize},
      Run{{1}, 0, {{0}, {0}}, {0}, 4, {}},
      Copy{{{1}}, {1}, {0}, 5, {3}},
      Wait{4},
      Wait{5},
      Free{{2}, {0}},
      Free{{2}, {1}},
  };
  VerifiedPlan verified = verify(graph, machine, std::move(plan)).value();
  return {std::move(graph), std::move(machine), std::move(verified)};
}

TEST(QueueLanes, TheProcessorUpdatesBesideTheDevice) {
  for (const char* slow : {"pinned", "dram"}) {
    const Planned planned = update_on_the_host(slow);
    for (const auto flags : {FakeDevice::Flags::offered, FakeDevice::Flags::refused}) {
      for (const Schedule schedule : {Schedule::eager, Schedule::random, Schedule::lazy}) {
        OnDevice device(planned, std::make_shared<FakeDevice>(schedule, 1, flags));
        std::size_t on_host = 0;
        for (const QueueAction& action : device.runner.script().actions)
          on_host += std::holds_alternative<QueueHostRun>(action.what);
        EXPECT_EQ(on_host, 1u);
        expect_plain_bits(planned, device.step(0, true), slow);
        EXPECT_EQ(device.violations(), std::vector<std::string>{});
      }
    }
  }
}

TEST(QueueLanes, AForgottenOrderBetweenEnginesIsSeen) {
  const Planned planned = update_on_the_host("pinned");
  std::uint64_t order = 1, seen = 0;
  for (std::uint64_t nth = 1; nth <= order; ++nth) {
    OnDevice device(planned, std::make_shared<FakeDevice>(Schedule::lazy));
    device.tiers.fill(0, true);
    const std::uint64_t before = device.fake_device->order_calls();
    device.fake_device->forget_call(nth);
    device.runner.step({7, 0, 0});
    order = device.fake_device->order_calls() - before;
    bool wrong = !device.violations().empty();
    const Kept plain = run_plainly(planned.graph), kept = device.tiers.kept();
    for (const auto& [place, bytes] : kept) wrong = wrong || bytes != plain.at({place.first, 0});
    seen += wrong;
  }
  EXPECT_GE(order, 4u);
  EXPECT_GE(seen, 2u) << "what puts the copy behind the kernel; what only a thread waits for shows by chance";
}

}  // namespace
}  // namespace terrace

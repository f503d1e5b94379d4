// SPDX-License-Identifier: Apache-2.0
// A plan whose bytes go from the device over pinned memory to a file and back gives the bits of the
// synchronous runner, whatever order the queues work in.
#include <unistd.h>

#include <filesystem>

#include "queues/rig.hpp"
#include "support/long_tests.hpp"
#include "terrace/planner.hpp"

namespace terrace {
namespace {

/// device, pinned memory and a file, of which neighbours are linked.
Machine machine_with_file(const std::string& path) {
  Machine machine = device_machine({"pinned", "blocks"});
  machine.tiers[2].spec = "file:" + path + ":16MiB,buffered";
  machine.tiers[2].granularity = Bytes{4096};
  std::erase_if(machine.links, [](const Link& link) {
    return (link.from == TierId{0} && link.to == TierId{2}) ||
           (link.from == TierId{2} && link.to == TierId{0});
  });
  return machine;
}

std::size_t copies_with_file(const Plan& plan) {
  return static_cast<std::size_t>(
      std::count_if(plan.instructions.begin(), plan.instructions.end(), [](const Instruction& one) {
        const auto* copy = std::get_if<Copy>(&one);
        return copy != nullptr && (copy->from == TierId{2} || copy->to == TierId{2});
      }));
}

TEST(QueueRunnerByHops, GivesTheBitsOfTheSynchronousRunner) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("hops" + std::to_string(getpid()))).native();
  std::size_t hops = 0;
  for (std::uint64_t seed = 0; seed < few_or_all<std::uint64_t>(24, 300); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomGraphOptions shape = small_graph();
    shape.persistent_share = 0.4;
    Graph graph = random_graph(shape, seed);
    Machine machine = machine_with_file(path);
    const Profile profile = estimate(graph, machine);
    std::vector<Bytes> budget{least_budget(graph, machine).bytes, machine.tiers[1].capacity, Bytes{16 << 20}};
    const auto alone = make_plan("prefetch", {graph, machine, profile, budget, seed});
    ASSERT_TRUE(alone) << alone.error().message;
    budget[1] = round_up(alone->budget[1] / 2, Bytes{256});
    auto plan = make_plan("prefetch", {graph, machine, profile, budget, seed});
    if (!plan) continue;  // one transfer takes more than that
    hops += copies_with_file(*plan);
    VerifiedPlan verified = verify(graph, machine, *std::move(plan)).value();
    const Planned planned{std::move(graph), std::move(machine), std::move(verified)};
    const std::vector<Kept> expected = run_synchronously(planned, 2);
    const Schedule schedule = std::vector{Schedule::eager, Schedule::random, Schedule::lazy}[seed % 3];
    OnDevice device(planned, std::make_shared<FakeDevice>(schedule, seed));
    for (std::uint64_t step = 0; step < 2; ++step)
      ASSERT_EQ(device.step(step, step == 0), expected[step]) << "step " << step;
    ASSERT_EQ(device.violations(), std::vector<std::string>{});
  }
  EXPECT_GT(hops, 40u) << "plans reach the file";
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace terrace

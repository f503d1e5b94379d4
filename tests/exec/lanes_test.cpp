// SPDX-License-Identifier: Apache-2.0
// Training with updates on a second engine: same bits as on one lane.
#include "terrace/trainer.hpp"

#include "exec/planned.hpp"
#include "migration/spread.hpp"

namespace terrace {
namespace {

/// The machine with a second engine of so many threads.
SlowTier with_engine(SlowTier slow, unsigned threads = 1) {
  std::vector<TierId> reached;
  for (std::uint32_t i = 0; i < 2; ++i) {
    if (slow.machine.tiers[i].addressable) reached.push_back({i});
  }
  slow.machine.further_engines = {{{"beside", threads, 1e11, {}}, reached}};
  return slow;
}

VerifiedPlan with_updates_beside(const Program& program, const SlowTier& slow) {
  const auto engine_of = [&](KernelId kernel) {
    return EngineId{program.graph[kernel].phase == Phase::update ? 1U : 0U};
  };
  return verify(program.graph, slow.machine,
                spread(program.graph, slow.machine, plan_for(program, slow).plan(), engine_of))
      .value();
}

TEST(LaneTrainer, UpdatesBesideTheRestGiveTheSameBits) {
  for (const Graph& graph : {small_resnet(), small_gpt()}) {
    for (const SlowTier& tier : {fake_memory(), fake_blocks()}) {
      SCOPED_TRACE(graph.name + " over " + tier.name);
      const SlowTier slow = with_engine(tier);
      const Program program = compile(graph, 1).value();
      const VerifiedPlan plan = with_updates_beside(program, slow);
      ASSERT_FALSE(has_one_lane(plan.plan()));
      Trainer beside =
          Trainer::start(program, plan, slow.machine, {.seed = 1, .learning_rate = 0.01F}).value();
      Trainer alone = start_unlimited(graph);
      for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(step(beside, i), step(alone, i)) << i;
      expect_same_state(beside, alone);
    }
  }
}

TEST(LaneTrainer, WantsAsManyThreadsOnEveryEngineAsKernelsWereMadeFor) {
  const SlowTier slow = with_engine(fake_memory(), 2);
  const Program program = compile(small_resnet(), 1).value();
  const auto trainer = Trainer::start(program, with_updates_beside(program, slow), slow.machine, {});
  ASSERT_FALSE(trainer.ok());
  EXPECT_NE(trainer.error().message.find("was compiled for 1 threads, and engine beside of"),
            std::string::npos)
      << trainer.error().message;
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// From solutions to plans: what the programs say is what the verifier and the simulator see.
#include <stop_token>

#include "autotm/written.hpp"
#include "support/graph_by_hand.hpp"
#include "support/long_tests.hpp"
#include "terrace/bounds.hpp"

namespace terrace::autotm {
namespace {

using Plans = WithCbc;

/// Static and synchronous programs model what the simulator does on any machine: nothing overlaps. The
/// asynchronous one takes transfers of both directions to share one link and kernels to lose nothing, which
/// is how the machines of these tests are.
TEST_F(Plans, TakeAsLongAsTheirProgramSays) {
  int compared = 0, moved = 0, beside = 0;
  for (std::uint64_t seed = 0; seed < few_or_all<std::uint64_t>(36, 60); ++seed) {
    const Problem given(seed, 3 + static_cast<std::uint32_t>(seed % 12));
    const auto all = [](const Instance&) { return true; };
    see_written(given, seed, all, [&](const Written& one) {
      const double objective = one.solved.objective.count();
      EXPECT_NEAR(one.timeline.step.count(), objective, objective * 1e-9);
      ++compared;
      if (!one.timeline.moved.empty()) ++moved;
      for (std::size_t t = 0; t < one.instance.tensors.size(); ++t) {
        for (const std::uint32_t edge : one.solved.solution.paths[t])
          beside += one.instance.tensors[t].edges[edge].beside;
      }
    });
  }
  EXPECT_GT(compared, few_or_all(45, 80));
  EXPECT_GT(moved, few_or_all(12, 20));
  EXPECT_GT(beside, few_or_all(12, 20));
}

TEST_F(Plans, AreTheSameEveryTime) {
  for (const Formulation formulation : kFormulations) {
    for (std::uint64_t seed = 100; seed < 104; ++seed) {
      const Problem given(seed, 12);
      const auto once = plan_by_program(given.request(), formulation),
                 again = plan_by_program(given.request(), formulation);
      ASSERT_EQ(once.ok(), again.ok());
      if (!once) continue;
      EXPECT_TRUE(once->plan == again->plan);
      EXPECT_EQ(once->bound, again->bound);
    }
  }
}

/// Whatever was found when time ran out, there is a plan, and nothing is claimed that was not proven.
TEST_F(Plans, AreMadeWhenTimeRunsOut) {
  for (const Formulation formulation : {Formulation::synchronous, Formulation::asynchronous}) {
    for (std::uint64_t seed = 200; seed < 203; ++seed) {
      Problem given(seed, 20);
      given.budget[0] = least_budget(given.graph, given.machine).bytes + Bytes{60'000};
      const auto planned = plan_by_program(given.request({{"seconds", "0"}, {"gap", "0"}}), formulation);
      ASSERT_TRUE(planned.ok()) << planned.error().message;
      EXPECT_TRUE(violations(given.graph, given.machine, planned->plan).empty());
      EXPECT_LE(planned->bound, planned->objective);
      const auto exact = plan_by_program(given.request(), formulation);
      ASSERT_TRUE(exact.ok()) << exact.error().message;
      EXPECT_LE(planned->bound.count(), exact->objective.count() * (1 + 1e-7));
    }
  }
}

/// So much work, however long it takes.
TEST_F(Plans, StopWhereTheyAreAskedToAndReadNoClock) {
  int better = 0;
  for (std::uint64_t seed = 200; seed < 206; ++seed) {
    Problem given(seed, 20);
    given.budget[0] = least_budget(given.graph, given.machine).bytes + Bytes{60'000};
    const auto with = [&](std::map<std::string, std::string> options, const std::stop_token& stop = {}) {
      options.insert({{"solver", "fast"}, {"gap", "0"}});
      PlanRequest request = given.request(std::move(options));
      request.stop = stop;
      return plan_by_program(request, Formulation::asynchronous).value();
    };
    std::stop_source stopped;
    stopped.request_stop();
    const auto limited = with({{"iterations", "300"}});
    EXPECT_TRUE(limited.plan == with({{"iterations", "300"}, {"seconds", "0"}}).plan);
    better += limited.objective < with({}, stopped.get_token()).objective ? 1 : 0;
  }
  EXPECT_GT(better, 0) << "work is of use";
}

/// One tensor that cannot stay beside another, in numbers.
TEST_F(Plans, MoveWhatCannotStay) {
  ByHand by_hand;
  const TensorId in = by_hand.tensor("in", TensorKind::input, 6400),
                 kept = by_hand.tensor("kept", TensorKind::activation, 64000),
                 large = by_hand.tensor("large", TensorKind::activation, 64000),
                 out = by_hand.tensor("out", TensorKind::activation, 6400);
  const auto kernel = [&](std::vector<TensorId> inputs, std::vector<TensorId> outputs) {
    by_hand.kernel(std::move(inputs), std::move(outputs),
                   {{"slow", Bytes{}, Seconds{4}}, {"quick", Bytes{}, Seconds{1}}});
  };
  kernel({in}, {kept});
  kernel({in}, {large});
  kernel({large}, {out});
  kernel({out}, {out});
  kernel({kept, out}, {out});
  Graph& graph = by_hand.graph;
  graph.results = {out};
  ASSERT_TRUE(validate(graph)) << validate(graph).error().message;
  SplitMix random(1);
  Machine machine = two_tiers(random, false);
  machine.links = {{{0}, {1}, {{Bytes{64}, {128000}}}, 0.5, 0, 1},
                   {{1}, {0}, {{Bytes{64}, {64000}}}, 0.5, 0, 1}};
  const Profile profile = estimate(graph, machine);
  const PlanRequest request{graph, machine, profile, {Bytes{128000}, Bytes{1 << 30}}, 0, {{"solver", "cbc"}}};
  // Half a second out and a second in. Nobody reads `kept` before it has to leave; it comes back beside the
  // fourth kernel, which takes as long.
  const auto waiting = plan_by_program(request, Formulation::synchronous),
             beside = plan_by_program(request, Formulation::asynchronous),
             fixed = plan_by_program(request, Formulation::fixed);
  ASSERT_TRUE(waiting.ok() && beside.ok());
  EXPECT_NEAR(waiting->objective.count(), 6.5, 1e-9);
  EXPECT_NEAR(beside->objective.count(), 5.5, 1e-9);
  for (const Instruction& instruction : waiting->plan.instructions) {
    if (const auto* run = std::get_if<terrace::Run>(&instruction)) {
      EXPECT_EQ(run->variant, 1U);
    }
  }
  ASSERT_FALSE(fixed.ok());
  EXPECT_EQ(fixed.error().message,
            "k1 needs 131.25 KiB of fast memory at once and 125.00 KiB is given: 6.25 KiB are missing, a "
            "planner that moves tensors may do");
}

TEST_F(Plans, RefuseOptionsThatAreNone) {
  const Problem given(1, 4);
  const std::pair<std::map<std::string, std::string>, const char*> cases[] = {
      {{{"solver", "gurobi"}}, "solver is fast or cbc, and 'gurobi' is given"},
      {{{"linking", "loose"}}, "linking is tight or paper, and 'loose' is given"},
      {{{"gap", "-1"}}, "gap is a share such as 0.01, and '-1' is given"},
      {{{"seconds", "soon"}}, "seconds is a number such as 60, and 'soon' is given"},
      {{{"iterations", "few"}}, "iterations is a number such as 300, and 'few' is given"}};
  for (const auto& [options, message] : cases) {
    const auto planned = plan_by_program(given.request(options), Formulation::synchronous);
    ASSERT_FALSE(planned.ok());
    EXPECT_EQ(planned.error().message, message);
  }
}

}  // namespace
}  // namespace terrace::autotm

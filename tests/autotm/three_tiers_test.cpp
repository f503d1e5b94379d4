// SPDX-License-Identifier: Apache-2.0
// Programs over three tiers, of which the second cannot hold everything.
#include <cmath>

#include "autotm/static_oracle.hpp"
#include "autotm/written.hpp"
#include "planners/autotm/solver/fast.hpp"
#include "support/long_tests.hpp"

namespace terrace::autotm {
namespace {

constexpr SolverLimits kExact{0, Seconds{600}};

/// The third may be one that kernels cannot use. Copies cost kernels nothing and share one link's time.
Machine three_tiers(SplitMix& random) {
  Machine machine = two_tiers(random, true);
  const auto rate = [&](double unit) {
    return BytesPerSecond{unit * static_cast<double>(1 + random.below(4))};
  };
  const bool addressable = random.below(2) == 0;
  const auto slower = [&](BytesPerSecond than) {
    return BytesPerSecond{than.value / static_cast<double>(1 + random.below(4))};
  };
  const BytesPerSecond read = slower(machine.tiers[1].read), write = slower(machine.tiers[1].write);
  machine.name = "three";
  machine.tiers.push_back(
      {"last", Bytes{1 << 30}, addressable, read, write, Seconds{1e-7}, Bytes{64}, {}, ""});
  for (std::uint32_t from = 0; from < 3; ++from) {
    for (std::uint32_t to = 0; to < 3; ++to) {
      if (from != to && (from == 2 || to == 2))
        machine.links.push_back({{from}, {to}, {{Bytes{64}, rate(1e8)}}, 0.5, 0, 1});
    }
  }
  return machine;
}

/// A small share of what is live at once in the first two tiers.
struct ThreeTiers : Problem {
  ThreeTiers(std::uint64_t seed, std::uint32_t kernels) : Problem(seed, kernels) {
    SplitMix random(seed + 7);
    machine = three_tiers(random);
    profile = estimate(graph, machine);
    const std::uint64_t peak = Lifetimes(graph).peak_bytes().count;
    budget = {Bytes{peak / 4 + random.below(peak / 2)}, Bytes{random.below(peak * 3 / 4)}, Bytes{1 << 30}};
  }
};

using ThreeTierPrograms = WithCbc;

/// Whether the second tier is too small, so that there is a third.
bool has_three(const Instance& instance) { return !instance.between.empty(); }

Result<Solved> solve(const PlanRequest& request, Formulation formulation) {
  const auto instance = make_instance(request, formulation, request.budget[0]);
  if (!instance) return instance.error();
  return solve_exactly(request, *instance, Linking::tight, kExact);
}

TEST_F(ThreeTierPrograms, FindTheBestOfAllStaticPlacements) {
  int solved = 0, infeasible = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const ThreeTiers given(seed, 2 + static_cast<std::uint32_t>(seed % 2));
    if (given.graph.tensors.size() > 9 || !given.machine.tiers[2].addressable) continue;
    const PlanRequest request = given.request();
    const auto instance = make_instance(request, Formulation::fixed, request.budget[0]);
    if (instance && !has_three(*instance)) continue;
    const double best = StaticOracle(request).best();
    const auto found = solve(request, Formulation::fixed);
    ASSERT_EQ(found.ok(), std::isfinite(best)) << best << (found ? "" : found.error().message);
    ++(found ? solved : infeasible);
    if (found) {
      EXPECT_NEAR(found->objective.count(), best, best * 1e-7);
    }
  }
  EXPECT_GT(solved, 20);
}

/// What the program says is what verifier and simulator see, in all tiers.
TEST_F(ThreeTierPrograms, AreWrittenAsPlansThatTakeAsLongAndHoldNoMore) {
  int compared = 0, between = 0, last = 0;
  for (std::uint64_t seed = 0; seed < few_or_all<std::uint64_t>(15, 25); ++seed) {
    const ThreeTiers given(seed, 3 + static_cast<std::uint32_t>(seed % 6));
    see_written(given, seed, has_three, [&](const Written& one) {
      const double step = one.timeline.step.count(), objective = one.solved.objective.count();
      EXPECT_LE(step, objective * (1 + 1e-9));
      // Beside kernels links of other tiers work in parallel, and so do tiers that kernels use.
      if (one.formulation != Formulation::asynchronous && !given.machine.tiers[2].addressable) {
        EXPECT_NEAR(step, objective, objective * 1e-9);
      }
      ++compared;
      between += one.timeline.peak[1] > Bytes{};
      last += one.timeline.peak[2] > Bytes{};
    });
  }
  EXPECT_GT(compared, few_or_all(15, 25));
  EXPECT_GT(between, few_or_all(10, 20));
  EXPECT_GT(last, few_or_all(10, 20));
}

/// A pool of nothing between is as good as none.
TEST_F(ThreeTierPrograms, AreThoseOfTwoTiersWhereTheSecondHoldsNothing) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < few_or_all<std::uint64_t>(15, 30); ++seed) {
    ThreeTiers given(seed, 5);
    given.budget[1] = Bytes{};
    Problem without = given;
    std::erase_if(without.machine.links,
                  [](const Link& link) { return link.from == TierId{1} || link.to == TierId{1}; });
    for (Link& link : without.machine.links) {
      link.from = {std::min(link.from.index, 1U)};
      link.to = {std::min(link.to.index, 1U)};
    }
    without.machine.tiers.erase(without.machine.tiers.begin() + 1);
    without.profile = estimate(without.graph, without.machine);
    without.budget.erase(without.budget.begin() + 1);
    for (const Formulation formulation : kFormulations) {
      SCOPED_TRACE(describe(formulation, seed));
      const auto three = solve(given.request(), formulation), two = solve(without.request(), formulation);
      // Static programs take a second tier that kernels can use, whatever it holds.
      if (formulation == Formulation::fixed && !given.machine.tiers[2].addressable) continue;
      ASSERT_EQ(three.ok(), two.ok()) << (three ? two.error().message : three.error().message);
      if (!three) continue;
      EXPECT_NEAR(three->objective.count(), two->objective.count(), two->objective.count() * 1e-7);
      ++compared;
    }
  }
  EXPECT_GT(compared, few_or_all(10, 20));
}

TEST_F(ThreeTierPrograms, AreNoSlowerWithMoreBetween) {
  int faster = 0;
  for (std::uint64_t seed = 100; seed < few_or_all<std::uint64_t>(107, 115); ++seed) {
    ThreeTiers given(seed, 5);
    const std::uint64_t peak = Lifetimes(given.graph).peak_bytes().count;
    for (const Formulation formulation : kFormulations) {
      double before = std::numeric_limits<double>::infinity();
      for (const std::uint64_t part : {0, 1, 2, 4, 8}) {
        given.budget[1] = Bytes{peak * part / 4};
        const auto found = solve(given.request(), formulation);
        if (!found) {
          EXPECT_TRUE(std::isinf(before));
          continue;
        }
        EXPECT_LE(found->objective.count(), before * (1 + 1e-7));
        faster += found->objective.count() < before * 0.999 && std::isfinite(before);
        before = found->objective.count();
      }
    }
  }
  EXPECT_GT(faster, few_or_all(3, 15));
}

TEST_F(ThreeTierPrograms, AreBoundedByTheFastSolver) {
  int solved = 0;
  double lost = 0;
  for (std::uint64_t seed = 200; seed < few_or_all<std::uint64_t>(213, 230); ++seed) {
    const ThreeTiers given(seed, 6);
    const PlanRequest request = given.request();
    for (const Formulation formulation : kFormulations) {
      SCOPED_TRACE(describe(formulation, seed));
      const auto instance = make_instance(request, formulation, request.budget[0]);
      if (!instance || !has_three(*instance)) continue;
      const auto exact = solve_exactly(request, *instance, Linking::tight, kExact);
      const auto fast = solve_fast(*instance, {.gap = 0.001, .iterations = 2000});
      if (!exact) {
        EXPECT_FALSE(fast.ok());
        continue;
      }
      if (!fast) continue;
      EXPECT_LE(fast->bound.count(), exact->objective.count() * (1 + 1e-5));
      EXPECT_GE(fast->time.count(), exact->bound.count() * (1 - 1e-5));
      EXPECT_EQ(fast->time, step_time(*instance, fast->solution));
      EXPECT_TRUE(is_within_capacities(*instance, fast->solution));
      ++solved;
      lost += fast->time / exact->objective - 1;
    }
  }
  EXPECT_GT(solved, few_or_all(15, 40));
  EXPECT_LT(lost / solved, 0.1);
}

/// Two tensors cannot stay beside a third. Out and in take a second by the tier between and three by the
/// last.
TEST_F(ThreeTierPrograms, UseTheTierBetweenForAsMuchAsItHolds) {
  Graph graph;
  graph.name = "by hand";
  graph.layers = {"only"};
  const auto tensor = [&](std::string name, TensorKind kind, std::int64_t bytes) {
    Tensor made;
    made.name = std::move(name);
    made.shape = {bytes / 4};
    made.kind = kind;
    made.bytes = Bytes{static_cast<std::uint64_t>(bytes)};
    graph.tensors.push_back(made);
    return TensorId{static_cast<std::uint32_t>(graph.tensors.size() - 1)};
  };
  const TensorId in = tensor("in", TensorKind::input, 6400),
                 one = tensor("one", TensorKind::activation, 64000),
                 other = tensor("other", TensorKind::activation, 64000),
                 large = tensor("large", TensorKind::activation, 120000),
                 out = tensor("out", TensorKind::activation, 6400);
  const auto kernel = [&](std::vector<TensorId> inputs, TensorId output) {
    Kernel made;
    made.name = "k" + std::to_string(graph.kernels.size());
    for (const TensorId id : inputs) made.inputs.push_back({id, graph[id].shape, graph[id].bytes, {}});
    made.outputs.push_back({output, graph[output].shape, graph[output].bytes, {}});
    made.variants = {{"only", Bytes{}, Seconds{1}}};
    graph.kernels.push_back(made);
  };
  kernel({in}, one);
  kernel({in}, other);
  kernel({in}, large);
  kernel({large}, out);
  kernel({one, other, out}, out);
  graph.results = {out};
  ASSERT_TRUE(validate(graph)) << validate(graph).error().message;
  SplitMix random(1);
  Machine machine = three_tiers(random);
  machine.tiers[1].addressable = machine.tiers[2].addressable = false;
  for (Link& link : machine.links) {
    const bool slower = link.from == TierId{2} || link.to == TierId{2};
    link.rates = {{Bytes{64}, {slower ? (link.to == TierId{2} ? 64000.0 : 32000.0) : 128000.0}}};
  }
  const Profile profile = estimate(graph, machine);
  const std::pair<std::uint64_t, double> cases[] = {{0, 11}, {64000, 9}, {300000, 7}};
  for (const auto& [between, seconds] : cases) {
    const PlanRequest request{graph, machine, profile, {Bytes{140800}, Bytes{between}, Bytes{1 << 30}}};
    const auto found = solve(request, Formulation::synchronous);
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_NEAR(found->objective.count(), seconds, 1e-9);
    const auto planned = plan_by_program(request, Formulation::synchronous);
    ASSERT_TRUE(planned.ok()) << planned.error().message;
    EXPECT_NEAR(planned->objective.count(), seconds, 1e-9);
    EXPECT_LE(planned->plan.budget[1], Bytes{between});
  }
}

}  // namespace
}  // namespace terrace::autotm

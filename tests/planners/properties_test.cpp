// SPDX-License-Identifier: Apache-2.0
// What holds of every planner, over random graphs, machines and budgets.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.hpp"
#include "graph/passes.hpp"
#include "support/long_tests.hpp"
#include "support/plan_interpreter.hpp"
#include "support/random_graph.hpp"
#include "support/random_machine.hpp"
#include "terrace/lifetimes.hpp"
#include "terrace/net.hpp"
#include "terrace/planner.hpp"
#include "terrace/simulate.hpp"
#include "terrace/verify.hpp"

namespace terrace {
namespace {

/// `best` asks many others, so that each of its cases takes as long as many of theirs.
std::uint64_t cases_of_best() { return few_or_all<std::uint64_t>(9, 40); }

std::uint64_t cases_for(std::string_view planner) {
  return planner == "best" ? cases_of_best() : few_or_all<std::uint64_t>(35, 150);
}

/// Those that search are given small graphs, and here they need not come close to the best.
bool is_search(std::string_view planner) { return planner.starts_with("autotm") || planner == "deeptm"; }

struct Case {
  Graph graph;
  Machine machine;
  Profile profile;
  std::vector<Bytes> budget;
  std::map<std::string, std::string> options;

  explicit Case(std::uint64_t seed, std::string_view planner = {}) {
    SplitMix random(seed);
    RandomGraphOptions shape;
    shape.kernels = 2 + static_cast<std::uint32_t>(random.below(is_search(planner) ? 8 : 40));
    if (planner == "deeptm") {
      options["episodes"] = "8";
    } else if (is_search(planner)) {
      options["gap"] = "0.05";
    }
    graph = random_graph(shape, seed);
    machine = random_machine(seed);
    profile = estimate(graph, machine);
    for (const MachineTier& tier : machine.tiers) budget.push_back(tier.capacity);
    // From the least to more than everything.
    const Bytes least = least_budget(graph, machine).bytes;
    const std::uint64_t peak = std::max(Lifetimes(graph).peak_bytes().count * 5 / 4, least.count + 1);
    budget[0] = random.below(4) == 0 ? least : Bytes{least.count + random.below(peak - least.count)};
  }
  PlanRequest request() const { return {graph, machine, profile, budget, 1, options}; }
};

std::string describe(const Case& given, std::string_view planner, std::uint64_t seed) {
  return std::string(planner) + ", case " + std::to_string(seed) + ", budget " + to_string(given.budget[0]);
}

/// Those that never move a tensor, or only what convolutions read, are for those who have the memory; nothing
/// else may refuse a budget that some plan fits.
bool may_refuse(std::string_view planner) {
  constexpr std::string_view kRefuse[] = {"all-fast", "all-slow", "first-touch", "vdnn", "autotm-static"};
  return std::find(std::begin(kRefuse), std::end(kRefuse), planner) != std::end(kRefuse);
}

class EveryPlanner : public testing::TestWithParam<PlannerInfo> {};

TEST_P(EveryPlanner, MakesPlansThatAreProvenSafe) {
  std::uint64_t planned = 0;
  for (std::uint64_t seed = 0; seed < cases_for(GetParam().name); ++seed) {
    const Case given(seed, GetParam().name);
    SCOPED_TRACE(describe(given, GetParam().name, seed));
    const auto plan = make_plan(GetParam().name, given.request());
    if (!plan) {
      ASSERT_TRUE(may_refuse(GetParam().name)) << plan.error().message;
      continue;
    }
    ++planned;
    const auto found = violations(given.graph, given.machine, *plan);
    ASSERT_TRUE(found.empty()) << found[0].instruction << ": " << found[0].reason;
    for (std::size_t tier = 0; tier < given.budget.size(); ++tier) {
      EXPECT_LE(plan->budget[tier], given.budget[tier]);
    }
  }
  EXPECT_GT(planned, cases_for(GetParam().name) / 10);
}

TEST_P(EveryPlanner, ComputesWhatTheGraphDoes) {
  for (std::uint64_t seed = 0; seed < cases_for(GetParam().name); seed += 5) {
    const Case given(seed, GetParam().name);
    SCOPED_TRACE(describe(given, GetParam().name, seed));
    const auto plan = make_plan(GetParam().name, given.request());
    if (!plan) continue;
    const StepBytes expected = plain_steps(given.graph, 2);
    for (const CopyTiming timing : {CopyTiming::at_copy, CopyTiming::at_wait}) {
      const auto computed = interpret(given.graph, given.machine, *plan, timing, 2);
      ASSERT_TRUE(computed.ok()) << computed.error().message;
      EXPECT_TRUE(*computed == expected);
    }
  }
}

TEST_P(EveryPlanner, IsNeverFasterThanTheBound) {
  for (std::uint64_t seed = 0; seed < cases_for(GetParam().name); ++seed) {
    const Case given(seed, GetParam().name);
    SCOPED_TRACE(describe(given, GetParam().name, seed));
    const auto plan = make_plan(GetParam().name, given.request());
    if (!plan) continue;
    const Seconds step = simulate(given.graph, given.machine, given.profile, *plan).step;
    EXPECT_GE(step.count(), plan->prediction.bound.count() * (1 - 1e-9));
    EXPECT_EQ(plan->prediction.step, step);
  }
}

TEST_P(EveryPlanner, MakesTheSamePlanAgain) {
  const Case given(3, GetParam().name);
  const auto once = make_plan(GetParam().name, given.request()),
             again = make_plan(GetParam().name, given.request());
  ASSERT_EQ(once.ok(), again.ok());
  if (once) {
    EXPECT_TRUE(*once == *again);
  }
}

TEST_P(EveryPlanner, MovesNothingWhereEverythingFits) {
  if (GetParam().name == "l2l") GTEST_SKIP() << "it holds one layer at a time, whatever fits";
  Case given(7, GetParam().name);
  for (MachineTier& tier : given.machine.tiers) tier.addressable = true;
  given.profile = estimate(given.graph, given.machine);
  given.budget[0] = given.machine.tiers[0].capacity;
  const auto plan = make_plan(GetParam().name, given.request());
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const bool works_in_fast_memory = plan->budget[0].count > 0;
  for (const Traffic& traffic : plan->prediction.moved) {
    EXPECT_TRUE(!works_in_fast_memory || traffic.bytes.count == 0);
  }
}

std::string name_of(const testing::TestParamInfo<PlannerInfo>& info) {
  std::string name(info.param.name);
  std::replace(name.begin(), name.end(), '-', '_');
  if (name.ends_with('+')) name.replace(name.size() - 1, 1, "_plus");
  return name;
}

INSTANTIATE_TEST_SUITE_P(Planners, EveryPlanner, testing::ValuesIn(planners().begin(), planners().end()),
                         name_of);

TEST(MakePlan, SuggestsWhatAMisspeltPlannerMayMean) {
  const Case given(1);
  const auto plan = make_plan("prefech", given.request());
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().message, "there is no planner 'prefech': take prefetch");
}

TEST(MakePlan, FindsNoFasterPlanByOneOfThePlannersThatBestAsks) {
  std::set<std::string_view> winners;
  int faster = 0;
  for (std::uint64_t seed = 0; seed < cases_of_best(); ++seed) {
    const Case given(seed);
    const Seconds best = make_plan("best", given.request()).value().prediction.step;
    Seconds fastest = Seconds::max();
    std::string_view winner;
    for (const std::string_view name : {"prefetch", "sentinel+", "capuchin", "autotm-async+iterations=300"}) {
      const auto plan = make_plan(name, given.request());
      if (!plan || plan->prediction.step >= fastest) continue;
      fastest = plan->prediction.step;
      winner = name;
    }
    EXPECT_LE(best, fastest) << seed;
    faster += best < fastest ? 1 : 0;
    winners.insert(winner);
  }
  EXPECT_GE(winners.size(), 3U) << "several are the fastest sometimes";
  EXPECT_GT(faster, 0) << "its own plans are, too";
}

TEST(MakePlan, TakesOptionsBehindTheName) {
  const Case given(1);
  const auto plan = make_plan("sentinel+interval=2+grouping=off", given.request());
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->planner, "sentinel+interval=2+grouping=off");
  const auto complaint = [&](const char* planner) {
    const auto refused = make_plan(planner, given.request());
    const auto checked = check_planner(planner);
    return refused ? "" : checked ? refused.error().message : checked.error().message;
  };
  EXPECT_EQ(complaint("sentinel+intervall=2"),
            "there is no option of planner sentinel named 'intervall': take interval or intervals");
  EXPECT_EQ(complaint("sentinel+interval"),
            "option interval of planner sentinel has no value: write interval=VALUE");
  EXPECT_EQ(complaint("lru+interval=2"), "planner lru has no options: leave out +interval=2");
  EXPECT_NE(complaint("sentinel+interval=never"), "");
}

TEST(MakePlan, PutsUpdatesOnAnotherEngineWhereThatIsFaster) {
  Case given(1);
  const auto complaint = [&](const char* planner) {
    const auto refused = make_plan(planner, given.request());
    return refused ? "" : refused.error().message;
  };
  EXPECT_EQ(complaint("lru+updates=beside"), "updates are to run on 'beside', and machine " +
                                                 given.machine.name +
                                                 " has one engine: describe another under its key 'engines'");
  std::vector<TierId> reached;
  for (std::uint32_t i = 0; i < given.machine.tiers.size(); ++i) {
    if (given.machine.tiers[i].addressable) reached.push_back({i});
  }
  given.machine.further_engines = {{{"beside", 1, given.machine.compute.flops_per_second, {}}, reached}};
  EXPECT_EQ(complaint("lru+updates=besides"),
            "machine " + given.machine.name + " has no further engine 'besides': take beside");
  for (std::size_t k = 0; k < given.graph.kernels.size(); ++k) {
    if (k % 3 == 1) given.graph.kernels[k].phase = Phase::update;
  }
  given.profile = estimate(given.graph, given.machine);
  for (const char* planner : {"lru", "prefetch", "next-use"}) {
    const auto alone = make_plan(planner, given.request());
    const auto beside = make_plan(std::string(planner) + "+updates=beside", given.request());
    ASSERT_TRUE(alone.ok() && beside.ok()) << planner;
    EXPECT_TRUE(violations(given.graph, given.machine, *beside).empty()) << planner;
    EXPECT_LE(beside->prediction.step, alone->prediction.step) << planner;
    EXPECT_LE(beside->prediction.bound, beside->prediction.step) << planner;
  }
}

/// Of two kernels of a backward pass one makes what the next layer needs, one what only an update needs: the
/// second goes to the other engine with the update, the first stays.
TEST(MakePlan, PutsGradientsOfWeightsBesideWhereOnlyUpdatesWaitForThem) {
  Net net("three layers");
  Value x = net.input("x", {32, 256});
  for (const char* layer : {"a", "b", "c"}) x = net.relu(net.linear(layer, x, 256));
  const Value label = net.input("label", {32}, DataType::i32);
  net.train(net.cross_entropy(x, label), {});
  const Graph graph = share_in_place(schedule(std::move(net).finish()));
  Machine machine;
  machine.name = "two cores";
  machine.tiers.resize(1);
  machine.tiers[0].name = "dram";
  machine.tiers[0].capacity = Bytes{1ULL << 30U};
  machine.tiers[0].read = machine.tiers[0].write = {1e12};
  machine.compute = {"core0", 1, 1e10};
  machine.further_engines = {{{"core1", 1, 1e10, {}}, {{0}}}};
  const Profile profile = estimate(graph, machine);
  const Plan plan =
      make_plan("all-fast+updates=core1", {graph, machine, profile, {machine.tiers[0].capacity}}).value();
  std::size_t gradients = 0;
  for (const Instruction& one : plan.instructions) {
    const auto* run = std::get_if<terrace::Run>(&one);
    if (run == nullptr) continue;
    const Kernel& kernel = graph[run->kernel];
    const bool is_gradient = kernel.operation == "linear_backward_weights";
    if (kernel.phase == Phase::update || is_gradient) {
      EXPECT_EQ(run->engine.index, 1u) << kernel.name;
    } else if (kernel.operation == "linear_backward_data") {
      EXPECT_EQ(run->engine.index, 0u) << kernel.name;
    }
    gradients += is_gradient;
  }
  EXPECT_EQ(gradients, 3u);
}

/// A budget below the least is refused with the kernel that needs it and what is missing.
TEST(MakePlan, NamesTheKernelThatNeedsMoreThanThereIs) {
  Case given(2);
  for (MachineTier& tier : given.machine.tiers) tier.addressable = &tier == &given.machine.tiers[0];
  given.profile = estimate(given.graph, given.machine);
  const LeastBudget least = least_budget(given.graph, given.machine);
  given.budget[0] = least.bytes - Bytes{1};
  for (const PlannerInfo& planner : planners()) {
    const auto plan = make_plan(planner.name, given.request());
    ASSERT_FALSE(plan.ok()) << planner.name;
    const std::string who = least.kernel ? given.graph[least.kernel].name : "what goes in and comes out";
    EXPECT_EQ(plan.error().message.find(who + " needs "), 0U) << plan.error().message;
    EXPECT_NE(plan.error().message.find("missing"), std::string::npos);
  }
}

}  // namespace
}  // namespace terrace

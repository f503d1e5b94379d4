// SPDX-License-Identifier: Apache-2.0
// Heat and learning against what can be said beforehand, and against every way there is.
#include <gtest/gtest.h>

#include <limits>

#include "base/random.hpp"
#include "baseline_rig.hpp"
#include "migration/synchronous.hpp"
#include "planners/deeptm/correction.hpp"
#include "planners/deeptm/heat.hpp"
#include "planners/deeptm/training.hpp"
#include "support/exhaustive.hpp"
#include "support/random_graph.hpp"
#include "support/random_machine.hpp"

namespace terrace {
namespace {

using deeptm::Hotter;
using deeptm::Properties;
using deeptm::Weights;

Properties some_properties(SplitMix& random) {
  const auto share = [&] { return static_cast<double>(random.below(1001)) / 1000; };
  return {share(), share(), share(), share(), 1 + static_cast<std::int64_t>(random.below(100))};
}

TEST(Heat, IsOfTheFourProperties) {
  const Properties of{.recency = 0.25, .frequency = 0.5, .size = 0.125, .lifetime = 1, .bytes = 1};
  EXPECT_DOUBLE_EQ(heat(of, {}, Hotter::long_lived), 0.5 - 0.25 - 0.125 + 1);
  EXPECT_DOUBLE_EQ(heat(of, {}, Hotter::short_lived), 0.5 - 0.25 - 0.125 - 1);
  const Weights weights{.recency = 2, .frequency = 3, .size = 4, .lifetime = 5};
  EXPECT_DOUBLE_EQ(heat(of, weights, Hotter::long_lived), 1.5 - 0.5 - 0.5 + 5);
}

/// Algorithm 1 ends with the hot bytes within a tenth of fast memory wherever single tensors are small
/// enough.
TEST(Heat, AdjustsWeightsUntilTheHotFillFastMemory) {
  int within = 0, cases = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SplitMix random(seed);
    std::vector<Properties> living;
    std::int64_t all = 0;
    for (int i = 0; i < 300; ++i) all += living.emplace_back(some_properties(random)).bytes;
    // Tight and less tight memory, so that both the weight of size and that of recency are adjusted.
    const std::int64_t capacity = all / (seed % 2 == 0 ? 5 : 2);
    Weights weights;
    const std::int64_t hot = adjust(weights, living, capacity, Hotter::long_lived);
    const double share = static_cast<double>(hot) / static_cast<double>(capacity);
    ++cases;
    within += share > 0.9 && share < 1.1 ? 1 : 0;
    EXPECT_EQ(weights.frequency, 1);
    EXPECT_EQ(weights.lifetime, 1);
    EXPECT_EQ(seed % 2 == 0 ? weights.recency : weights.size, 1) << seed;
  }
  EXPECT_EQ(within, cases);
}

TEST(Heat, LeavesWeightsAloneWhereEverythingFits) {
  SplitMix random(1);
  std::vector<Properties> living(20);
  for (Properties& one : living) one = some_properties(random);
  Weights weights;
  adjust(weights, living, 1'000'000, Hotter::short_lived);
  EXPECT_EQ(weights.size, 1);
  EXPECT_EQ(weights.recency, 1);
}

/// In a chain forward and back, what was made last comes back first: by recency the first made leave.
TEST(Heat, ByRecencyMovesWhatIsUsedLast) {
  const Planned planned(rig_chain(8), rig_machine(1e6, false));
  const auto plan = make_plan("heat+by=recency", planned.request(6 * kMega));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const auto left = copied(planned, *plan, {0});
  EXPECT_EQ(left.count("a7"), 0U);
  EXPECT_EQ(left.count("a1"), 1U);
}

TEST(Heat, RefusesAWrongValue) {
  const Planned planned(rig_chain(3), rig_machine(1e6, false));
  const auto refused = make_plan("heat+by=colour", planned.request(6 * kMega));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "by is all, size, lifetime, recency or frequency, and 'colour' is given");
}

TEST(Synchronous, PlansWaitForEveryTransferAtOnce) {
  const Planned planned(rig_chain(8), rig_machine(1e6, false));
  auto plan = make_plan("prefetch", planned.request(5 * kMega));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  migration::wait_at_once(*plan);
  std::size_t copies = 0;
  for (std::size_t i = 0; i < plan->instructions.size(); ++i) {
    const auto* copy = std::get_if<Copy>(&plan->instructions[i]);
    if (copy == nullptr) continue;
    ++copies;
    const auto* wait = std::get_if<Wait>(&plan->instructions[i + 1]);
    ASSERT_NE(wait, nullptr);
    EXPECT_EQ(wait->ticket, copy->ticket);
  }
  EXPECT_GT(copies, 0U);
  EXPECT_TRUE(violations(planned.graph, planned.machine, *plan).empty());
  const Timeline timeline = simulate(planned.graph, planned.machine, planned.profile, *plan);
  Seconds sum{0};
  for (const Interval& one : timeline.instructions) sum += one.length();
  // Kernels and transfers one after the other; every transfer is counted in its copy and in its wait.
  Seconds waited{0};
  for (std::size_t i = 0; i < plan->instructions.size(); ++i)
    if (std::holds_alternative<Wait>(plan->instructions[i])) waited += timeline.instructions[i].length();
  EXPECT_NEAR(timeline.step.count(), (sum - waited).count(), 1e-9 * timeline.step.count());
}

/// Tries every answer to every decision.
class EveryDecision {
 public:
  explicit EveryDecision(const deeptm::Environment& environment) : environment_(environment) {}
  Seconds best() {
    search(deeptm::Rollout(environment_, environment_.request().budget[0]));
    return best_;
  }
  std::size_t leaves() const { return leaves_; }

 private:
  static constexpr std::size_t kMost = 256;
  void search(const deeptm::Rollout& from) {
    if (leaves_ > kMost) return;
    if (from.done()) return end(from);
    for (std::uint32_t tier = 0; tier < environment_.tiers(); ++tier) {
      deeptm::Rollout next = from;
      if (!next.act({tier}).no_room) search(next);
    }
  }
  void end(const deeptm::Rollout& done) {
    ++leaves_;
    const auto draft = done.write({0});
    const PlanRequest& request = environment_.request();
    if (!draft || draft->needed[0] > request.budget[0]) return;
    best_ = std::min(best_, simulate(request.graph, request.machine, request.profile, draft->plan).step);
  }

  const deeptm::Environment& environment_;
  std::size_t leaves_ = 0;
  Seconds best_ = Seconds::max();
};

struct TinyCase {
  Graph graph;
  Machine machine;
  Profile profile;
  std::vector<Bytes> budget;

  explicit TinyCase(std::uint64_t seed) {
    SplitMix random(seed);
    RandomGraphOptions shape;
    shape.kernels = 3 + static_cast<std::uint32_t>(random.below(3));
    shape.least = Bytes{1024};
    graph = random_graph(shape, seed);
    machine = random_machine(seed);
    profile = estimate(graph, machine);
    for (const MachineTier& tier : machine.tiers) budget.push_back(tier.capacity);
    const Bytes least = least_budget(graph, machine).bytes;
    const Bytes peak = Lifetimes(graph).peak_bytes();
    budget[0] = least + Bytes{peak > least ? (peak - least).count / 3 : 0};
  }
  PlanRequest request() const { return {graph, machine, profile, budget, 1}; }
};

TEST(DeepTm, FindsTheBestOfAllDecisionsInTinyGraphs) {
  int compared = 0, choices = 0;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const TinyCase given(seed);
    const PlanRequest request = given.request();
    for (const auto copies : {deeptm::Copies::synchronous, deeptm::Copies::asynchronous}) {
      deeptm::EnvironmentRules rules;
      rules.copies = copies;
      const deeptm::Environment environment(request, rules);
      EveryDecision every(environment);
      const Seconds best = every.best();
      if (best == Seconds::max() || every.leaves() > 256 || every.leaves() < 2) continue;
      deeptm::Training training(environment, {.episodes = 400, .seed = 1});
      training.run();
      ++compared;
      choices += every.leaves() > 8 ? 1 : 0;
      EXPECT_LE(training.step().count(), best.count() * (1 + 1e-9))
          << "case " << seed << ", " << every.leaves() << " ways";
    }
  }
  EXPECT_GE(compared, 6);
  EXPECT_GT(choices, 2);
}

/// Without learning, changes of single decisions alone find most of what there is to find.
TEST(DeepTm, ImprovesTheBestEpisodeByChangingSingleDecisions) {
  int compared = 0, improved = 0, met = 0;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const TinyCase given(seed);
    const PlanRequest request = given.request();
    const deeptm::Environment environment(request, {});
    EveryDecision every(environment);
    const Seconds best = every.best();
    if (best == Seconds::max() || every.leaves() > 256 || every.leaves() < 2) continue;
    deeptm::Training plain(environment, {.episodes = 3, .refine = 0, .seed = 1});
    deeptm::Training refined(environment, {.episodes = 3, .refine = 400, .seed = 1});
    plain.run();
    refined.run();
    ++compared;
    EXPECT_LE(refined.step(), plain.step());
    improved += refined.step() < plain.step() ? 1 : 0;
    met += refined.step().count() <= best.count() * (1 + 1e-9) ? 1 : 0;
  }
  EXPECT_GT(improved, 0);
  EXPECT_GE(met * 10, compared * 9) << met << " of " << compared;
}

/// The oracle of the bounds moves tensors at any time, between memory and a disk.
TEST(DeepTm, MeetsTheOracleThatMovesAtAnyTime) {
  int compared = 0, met = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    SplitMix random(seed);
    RandomGraphOptions options;
    options.kernels = 4 + static_cast<std::uint32_t>(random.below(3));
    options.least = Bytes{1024};
    const Graph graph = random_graph(options, seed);
    const Machine machine = memory_and_disk(4e8, 4e8, 0.1);
    const Profile profile = estimate(graph, machine);
    Bytes kept{};
    for (const Tensor& tensor : graph.tensors)
      if (tensor.persistent) kept += round_up(tensor.bytes, Bytes{64});
    const PlanRequest request{graph,   machine,
                              profile, {least_budget(graph, machine).bytes + kept, Bytes{1 << 30}},
                              1,       {{"episodes", "60"}}};
    Exhaustive search(request);
    if (search.size() == 0 || search.size() > 2) continue;
    const Seconds best = search.best();
    if (best.count() == std::numeric_limits<double>::infinity()) continue;
    const auto plan = make_plan("deeptm", request);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    ++compared;
    met += plan->prediction.step.count() <= best.count() * (1 + 1e-9) ? 1 : 0;
  }
  EXPECT_GT(compared, 10);
  EXPECT_GE(met * 10, compared * 9) << met << " of " << compared;
}

PlanRequest quick(const Planned& planned, std::uint64_t fast) {
  PlanRequest request = planned.request(fast);
  request.options["episodes"] = "30";
  return request;
}

TEST(DeepTm, IsNeverSlowerThanHeat) {
  const Planned planned(rig_chain(8), rig_machine(2e6, true));
  for (const std::uint64_t mega : {3, 4, 6}) {
    const auto heat = make_plan("heat", planned.request(mega * kMega));
    const auto learned = make_plan("deeptm", quick(planned, mega * kMega));
    ASSERT_TRUE(heat.ok() && learned.ok());
    EXPECT_LE(learned->prediction.step.count(), heat->prediction.step.count() * (1 + 1e-9));
  }
}

TEST(DeepTm, KeepsTheBestPlanWhenItIsStopped) {
  const Planned planned(rig_chain(8), rig_machine(2e6, true));
  PlanRequest request = quick(planned, 4 * kMega);
  std::stop_source stop;
  request.stop = stop.get_token();
  int told = 0;
  request.progress = [&](const std::string& words) {
    EXPECT_NE(words.find("best step"), std::string::npos);
    if (++told == 3) stop.request_stop();
  };
  const auto plan = make_plan("deeptm", request);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(told, 3);
  EXPECT_TRUE(violations(planned.graph, planned.machine, *plan).empty());
  // Stopped before it begins, it has what heat decides.
  request.progress = no_progress;
  const auto at_once = make_plan("deeptm", request), heat = make_plan("heat", planned.request(4 * kMega));
  ASSERT_TRUE(at_once.ok() && heat.ok());
  EXPECT_EQ(at_once->instructions, heat->instructions);
}

TEST(DeepTm, ContinuesFromTheNearestAgent) {
  const Planned planned(rig_chain(8), rig_machine(2e6, true));
  LearnedAgents agents;
  PlanRequest request = quick(planned, 4 * kMega);
  request.agents = &agents;
  const auto first = make_plan("deeptm", request);
  ASSERT_TRUE(first.ok()) << first.error().message;
  ASSERT_EQ(agents.size(), 1U);
  request.options["episodes"] = "1";
  const auto again = make_plan("deeptm", request);
  ASSERT_TRUE(again.ok());
  EXPECT_LE(again->prediction.step.count(), first->prediction.step.count() * (1 + 1e-9));
  EXPECT_NE(again->remark.find("agent trained before"), std::string::npos) << again->remark;
  EXPECT_EQ(agents.size(), 1U);
  request.budget[0] = Bytes{5 * kMega};
  ASSERT_TRUE(make_plan("deeptm", request).ok());
  EXPECT_EQ(agents.size(), 2U);
  EXPECT_EQ(nearest_agent(agents, agents[0].planner, agents[0].graph, agents[0].machine, Bytes{9 * kMega})
                ->budget[0],
            Bytes{5 * kMega});
  const auto read = agents_from_json(to_json(agents));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, agents);
  EXPECT_FALSE(agents_from_json("[{\"planner\": 3}]").ok());
}

/// A kernel turns out ten times slower with an operand in slow memory than was assumed: the next plan from
/// the same agent no longer has it there.
TEST(DeepTm, LearnsFromAStepThatWasMeasured) {
  Planned planned(rig_chain(8), rig_machine(4e6, true));
  LearnedAgents agents;
  PlanRequest request = quick(planned, 4 * kMega);
  request.agents = &agents;
  const auto plan = make_plan("deeptm", request);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  Timeline executed = simulate(planned.graph, planned.machine, planned.profile, *plan);
  const auto in_slow = [](const Plan& of) {
    std::vector<const terrace::Run*> found;
    for (const Instruction& instruction : of.instructions) {
      const auto* run = std::get_if<terrace::Run>(&instruction);
      if (run != nullptr && std::find(run->tiers.begin(), run->tiers.end(), TierId{1}) != run->tiers.end())
        found.push_back(run);
    }
    return found;
  };
  const auto assumed = in_slow(*plan);
  ASSERT_FALSE(assumed.empty()) << "some kernel uses slow memory in place";
  for (std::size_t i = 0; i < plan->instructions.size(); ++i) {
    const auto* run = std::get_if<terrace::Run>(&plan->instructions[i]);
    if (run == assumed.front()) executed.instructions[i].end += 10 * executed.instructions[i].length();
  }
  const Profile measured = deeptm::corrected(planned.graph, planned.profile, *plan, executed);
  const Seconds before = simulate(planned.graph, planned.machine, measured, *plan).step;
  PlanRequest next{planned.graph, planned.machine, measured, request.budget, 1, request.options};
  next.agents = &agents;
  next.options["episodes"] = "200";
  const auto better = make_plan("deeptm", next);
  ASSERT_TRUE(better.ok()) << better.error().message;
  EXPECT_LT(better->prediction.step, before);
  for (const terrace::Run* run : in_slow(*better))
    EXPECT_FALSE(run->kernel == assumed.front()->kernel && run->tiers == assumed.front()->tiers);
}

}  // namespace
}  // namespace terrace

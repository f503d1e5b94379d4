// SPDX-License-Identifier: Apache-2.0
// Steps in which kernels run again.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <limits>

#include "base/random.hpp"
#include "planners/baseline_rig.hpp"
#include "planners/best/checkpoints.hpp"
#include "planners/best/eviction_walk.hpp"
#include "planners/best/guided_planning.hpp"
#include "support/long_tests.hpp"
#include "support/plan_interpreter.hpp"
#include "support/random_graph.hpp"
#include "support/random_machine.hpp"
#include "terrace/lifetimes.hpp"
#include "terrace/simulate.hpp"
#include "terrace/verify.hpp"

namespace terrace::best {
namespace {

/// Of what forward makes: from its last use forward to its first use backward.
DiscardWindow over_its_gap(const Graph& graph, TensorId tensor) {
  DiscardWindow discarded;
  const std::vector<KernelId> users = Lifetimes(graph)[tensor].users;
  for (const KernelId user : users) {
    if (graph[user].phase == Phase::forward) discarded.after = user.index;
    if (graph[user].phase != Phase::forward && discarded.until == kNever) discarded.until = user.index;
  }
  return discarded;
}

std::vector<DiscardWindow> drop(const Graph& graph, const std::vector<const char*>& names) {
  std::vector<DiscardWindow> discarded(graph.tensors.size());
  for (const char* name : names) {
    const TensorId tensor = find_tensor(graph, name);
    discarded[tensor.index] = over_its_gap(graph, tensor);
  }
  return discarded;
}

std::string order_of(const Graph& graph) {
  std::string names;
  for (const Kernel& kernel : graph.kernels) {
    const bool forward = kernel.phase == Phase::forward;
    names += (forward ? " f" : " b") + kernel.name.substr(forward ? 7 : 8);
  }
  return names;
}

Result<Plan> plan_of(const RecomputeRewrite& remade) {
  const PlanRequest step = remade.request();
  const GuidedPlanning planning(step, MultiplierEffort::careful, remade.side_by_side());
  auto draft = planning.draft(GuidedPlanning::Recipe{});
  if (!draft) return draft.error();
  return remade.restore(*std::move(draft));
}

/// The first violation, or what a computed byte would be otherwise.
std::string wrong_with(const Graph& graph, const Machine& machine, const Plan& plan) {
  const auto found = violations(graph, machine, plan);
  if (!found.empty()) return to_text(found[0], graph, machine, plan);
  for (const CopyTiming timing : {CopyTiming::at_copy, CopyTiming::at_wait}) {
    const auto computed = interpret(graph, machine, plan, timing, 2);
    if (!computed) return computed.error().message;
    if (*computed != plain_steps(graph, 2)) return "it computes something else";
  }
  return "";
}

TEST(RecomputeRewrite, RunsAChainAgainBeforeItsFirstUse) {
  const Planned planned(rig_chain(6), rig_machine(1e7, false));
  const PlanRequest request = planned.request(8 * kMega);
  const StepUses uses(planned.graph);
  const RecomputeRewrite remade(request, uses, drop(planned.graph, {"a2", "a3", "a4"}));
  EXPECT_EQ(order_of(remade.request().graph), " f1 f2 f3 f4 f5 f6 b5 f2 f3 f4 b4 b3 b2 b1 b0");
  EXPECT_EQ(remade.recomputations(), 3U);
}

TEST(RecomputeRewrite, MakesSegmentsOneAfterTheOther) {
  const Planned planned(rig_chain(7), rig_machine(1e7, false));
  const PlanRequest request = planned.request(8 * kMega);
  const StepUses uses(planned.graph);
  const RecomputeRewrite remade(request, uses, drop(planned.graph, {"a1", "a2", "a4", "a5"}));
  EXPECT_EQ(order_of(remade.request().graph), " f1 f2 f3 f4 f5 f6 f7 b6 f4 f5 b5 b4 b3 f1 f2 b2 b1 b0");
}

TEST(RecomputeRewrite, KeepsResultsAndMakesTheRest) {
  Graph graph = rig_chain(6);
  graph.results.push_back(find_tensor(graph, "a3"));
  const Planned planned(graph, rig_machine(1e7, false));
  const PlanRequest request = planned.request(8 * kMega);
  const StepUses uses(planned.graph);
  const RecomputeRewrite remade(request, uses, drop(planned.graph, {"a2", "a3", "a4"}));
  EXPECT_EQ(order_of(remade.request().graph), " f1 f2 f3 f4 f5 f6 b5 f4 b4 b3 f2 b2 b1 b0");
}

TEST(RecomputeRewrite, NeedsLessFastMemory) {
  const Planned planned(rig_chain(8), rig_machine(1e7, false));
  const PlanRequest request = planned.request(6 * kMega);
  const StepUses uses(planned.graph);
  const RecomputeRewrite remade(request, uses, drop(planned.graph, {"a1", "a2", "a3", "a5", "a6"}));
  EXPECT_GT(Lifetimes(planned.graph).peak_bytes().count, 8 * kMega);
  EXPECT_LT(Lifetimes(remade.request().graph).peak_bytes().count, 7 * kMega);
}

/// The kernels count in a persistent tensor, as batch normalisation does, each in its own.
void let_count(Graph& graph, const std::vector<std::uint32_t>& kernels) {
  RigGraph rig;
  rig.graph = std::move(graph);
  for (const std::uint32_t k : kernels) {
    const TensorId count = rig.tensor("count" + std::to_string(k), 64, TensorKind::statistics, true);
    Kernel& kernel = rig.graph.kernels[k];
    kernel.inputs.push_back({count, rig.graph[count].shape, Bytes{64}, {}});
    kernel.outputs.push_back({count, rig.graph[count].shape, Bytes{64}, {}});
  }
  graph = std::move(rig.graph);
}

Graph counting_chain(std::uint32_t length) {
  Graph graph = rig_chain(static_cast<int>(length));
  std::vector<std::uint32_t> forward;
  for (std::uint32_t k = 0; k < length; ++k) forward.push_back(k);
  let_count(graph, forward);
  return graph;
}

TEST(RecomputeRewrite, ReadsAgainWhatItsFirstRunChanged) {
  const Planned planned(counting_chain(6), rig_machine(1e7, false));
  const PlanRequest request = planned.request(6 * kMega);
  const StepUses uses(planned.graph);
  const RecomputeRewrite remade(request, uses, drop(planned.graph, {"a2", "a3", "a4"}));
  EXPECT_EQ(remade.side_by_side().size(), 3U);
  const auto plan = plan_of(remade);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(wrong_with(planned.graph, planned.machine, *plan), "");
  EXPECT_EQ(runs(*plan), planned.graph.kernels.size() + 3);
  // The old values of all three travel together, once out and once in, and leave before others are in the
  // way.
  std::size_t together = 0, ran = 0;
  for (const Instruction& instruction : plan->instructions) {
    ran += std::holds_alternative<terrace::Run>(instruction) ? 1 : 0;
    const auto* copy = std::get_if<Copy>(&instruction);
    if (copy == nullptr || copy->tensors.size() != 3) continue;
    EXPECT_EQ(ran == 0, together == 0);
    ++together;
  }
  EXPECT_EQ(together, 2U);
}

/// What is gone before a kernel, made again with everything that is gone by then.
RecomputeBatch batch_of(const PlanRequest& request, const StepUses& uses, const char* wanted,
                        const std::vector<const char*>& gone, std::uint32_t before) {
  RecomputeClosure closure(request.graph, uses, request.machine);
  const auto at_hand = [&](TensorId tensor) {
    return std::none_of(gone.begin(), gone.end(),
                        [&](const char* name) { return request.graph[tensor].name == name; });
  };
  EXPECT_TRUE(closure.collect(find_tensor(request.graph, wanted), before, at_hand,
                              [](std::uint32_t) { return true; }));
  return {before, closure.kernels(), closure.tensors()};
}

TEST(RecomputeRewrite, RunsAKernelAsOftenAsBatchesSay) {
  const Planned planned(counting_chain(6), rig_machine(1e7, false));
  const PlanRequest request = planned.request(6 * kMega);
  const StepUses uses(planned.graph);
  // The first four values are made for each kernel backward anew, from the first of the chain.
  const std::vector<const char*> gone{"a1", "a2", "a3", "a4"};
  std::vector<RecomputeBatch> batches;
  for (const char* wanted : {"a4", "a3", "a2", "a1"}) {
    const auto before = over_its_gap(planned.graph, find_tensor(planned.graph, wanted)).until;
    ASSERT_NE(before, kNever) << wanted;
    batches.push_back(batch_of(request, uses, wanted, gone, before));
  }
  const RecomputeRewrite remade(request, uses, batches);
  EXPECT_EQ(remade.recomputations(), 4U + 3U + 2U + 1U);
  EXPECT_EQ(remade.side_by_side().size(), 4U);
  const auto plan = plan_of(remade);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(wrong_with(planned.graph, planned.machine, *plan), "");
  EXPECT_EQ(runs(*plan), planned.graph.kernels.size() + 10);
}

/// The kernels count in one persistent tensor.
void let_count_together(Graph& graph, const std::vector<std::uint32_t>& kernels) {
  RigGraph rig;
  rig.graph = std::move(graph);
  const TensorId count = rig.tensor("count", 64, TensorKind::statistics, true);
  for (const std::uint32_t k : kernels) {
    rig.graph.kernels[k].inputs.push_back({count, rig.graph[count].shape, Bytes{64}, {}});
    rig.graph.kernels[k].outputs.push_back({count, rig.graph[count].shape, Bytes{64}, {}});
  }
  graph = std::move(rig.graph);
}

TEST(RecomputeRewrite, KeepsTheValueThatAnotherKernelMadeBeforeItsFirstRun) {
  Graph graph = rig_chain(6);
  let_count(graph, {1});
  let_count_together(graph, {3, 4});
  const Planned planned(graph, rig_machine(1e7, false));
  const PlanRequest request = planned.request(6 * kMega);
  const StepUses uses(planned.graph);
  const RecomputeRewrite remade(request, uses, drop(planned.graph, {"a2", "a5"}));
  ASSERT_EQ(remade.recomputations(), 2U);
  ASSERT_EQ(remade.side_by_side().size(), 2U);
  const auto plan = plan_of(remade);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(wrong_with(planned.graph, planned.machine, *plan), "");
}

TEST(RecomputeRewrite, RunsNothingAgainThatChangesWhatIsNowhereElse) {
  Planned planned(counting_chain(6), rig_machine(1e7, false));
  planned.machine.links.clear();
  planned.profile = estimate(planned.graph, planned.machine);
  const PlanRequest request = planned.request(6 * kMega);
  const StepUses uses(planned.graph);
  EXPECT_EQ(RecomputeRewrite(request, uses, drop(planned.graph, {"a2", "a3", "a4"})).recomputations(), 0U);
}

TEST(RecomputeRewrite, GivesPlansThatComputeTheSameOfRandomGraphs) {
  const auto cases = few_or_all<std::uint64_t>(80, 300);
  std::uint64_t planned = 0, ran_again = 0, read_twice = 0;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    SplitMix random(seed);
    RandomGraphOptions shape;
    shape.kernels = 4 + static_cast<std::uint32_t>(random.below(30));
    shape.result_share = 0.03;
    Graph graph = random_graph(shape, seed);
    std::vector<std::uint32_t> counting;
    for (std::uint32_t k = 0; k < shape.kernels; ++k) {
      if (random.below(3) == 0) counting.push_back(k);
    }
    let_count(graph, counting);
    const Machine machine = random_machine(seed);
    const Profile profile = estimate(graph, machine);
    PlanRequest request{graph, machine, profile, {}};
    for (const MachineTier& tier : machine.tiers) request.budget.push_back(tier.capacity);
    const std::uint64_t least = least_budget(graph, machine).bytes.count;
    request.budget[0] = Bytes{least + random.below(Lifetimes(graph).peak_bytes().count)};
    const StepUses uses(graph);
    std::vector<DiscardWindow> discarded(graph.tensors.size());
    for (std::uint32_t k = 0; k < uses.kernels(); ++k) {
      for (const Use& use : uses.of(k)) {
        const bool over = use.next == kNever, gap = !over && use.next < uses.kernels() && use.next_reads;
        if ((over || gap) && random.below(2) == 0) discarded[use.tensor.index] = {k, use.next};
      }
    }
    const RecomputeRewrite remade(request, uses, discarded);
    const auto plan = plan_of(remade);
    if (!plan) continue;
    ++planned;
    ran_again += remade.recomputations() > 0 ? 1 : 0;
    read_twice += remade.side_by_side().empty() ? 0 : 1;
    ASSERT_EQ(wrong_with(graph, machine, *plan), "") << "case " << seed;
    const Seconds step = simulate(graph, machine, profile, *plan).step;
    EXPECT_GE(step.count(), step_bound(request).step.count() * (1 - 1e-9)) << "case " << seed;
  }
  EXPECT_GT(planned, cases / 2);
  EXPECT_GT(ran_again, cases / 4);
  EXPECT_GT(read_twice, cases / 10) << planned << " planned, " << ran_again << " ran again";
}

TEST(EvictionWalk, EvictsNothingWhereEverythingFits) {
  const Planned planned(rig_chain(12), rig_machine(1e7, false));
  const PlanRequest request = planned.request(64 * kMega);
  const GuidedPlanning planning(request);
  EvictionWalk walk(request, planning.uses(), planning.problem());
  EXPECT_TRUE(walk.run({}).empty());
}

TEST(EvictionWalk, LeavesWhatFitsInTheMemoryThatItMayTake) {
  const Planned planned(rig_chain(24), rig_machine(1e5, false));
  const PlanRequest request = planned.request(8 * kMega);
  const GuidedPlanning planning(request);
  EvictionWalk walk(request, planning.uses(), planning.problem());
  const auto batches = walk.run({0, 1, StatesAway::none});
  ASSERT_FALSE(batches.empty());
  const RecomputeRewrite remade(request, planning.uses(), batches);
  EXPECT_LE(Lifetimes(remade.request().graph).peak_bytes().count, 8 * kMega);
  EXPECT_GT(Lifetimes(planned.graph).peak_bytes().count, 20 * kMega);
  std::vector<int> times(planned.graph.kernels.size());
  for (const RecomputeBatch& batch : batches) {
    for (const std::uint32_t kernel : batch.kernels) ++times[kernel];
  }
  EXPECT_GE(*std::max_element(times.begin(), times.end()), 2) << "in so little memory some run a third time";
}

TEST(EvictionWalk, GivesPlansThatComputeTheSameOfRandomGraphs) {
  const auto cases = few_or_all<std::uint64_t>(30, 600);
  std::uint64_t planned = 0, ran_again = 0, ran_thrice = 0, read_again = 0;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    SplitMix random(seed);
    RandomGraphOptions shape;
    shape.kernels = 10 + static_cast<std::uint32_t>(random.below(30));
    shape.result_share = 0.03;
    Graph graph = random_graph(shape, seed);
    for (Kernel& kernel : graph.kernels) kernel.phase = Phase::forward;
    std::vector<std::uint32_t> counting;
    for (std::uint32_t k = 0; k < shape.kernels; ++k) {
      if (random.below(3) == 0) counting.push_back(k);
    }
    let_count(graph, counting);
    Machine machine = random_machine(seed);
    for (std::size_t i = 1; i < machine.tiers.size(); ++i) machine.tiers[i].addressable = false;
    const Profile profile = estimate(graph, machine);
    PlanRequest request{graph, machine, profile, {}};
    for (const MachineTier& tier : machine.tiers) request.budget.push_back(tier.capacity);
    const std::uint64_t least = least_budget(graph, machine).bytes.count;
    request.budget[0] = Bytes{least + random.below(Lifetimes(graph).peak_bytes().count / 2)};
    const GuidedPlanning planning(request);
    if (!planning.problem().linked) continue;
    EvictionWalk walk(request, planning.uses(), planning.problem());
    const std::vector<RecomputeBatch> batches =
        walk.run({0.5 * static_cast<double>(random.below(3)), 1, static_cast<StatesAway>(random.below(3))});
    std::vector<int> times(graph.kernels.size());
    int most = 0;
    for (const RecomputeBatch& batch : batches) {
      for (const std::uint32_t kernel : batch.kernels) most = std::max(most, ++times[kernel]);
    }
    const RecomputeRewrite remade(request, planning.uses(), batches);
    const auto plan = plan_of(remade);
    if (!plan) continue;
    ++planned;
    ran_again += most > 0 ? 1 : 0;
    ran_thrice += most > 1 ? 1 : 0;
    read_again += most > 1 && !remade.side_by_side().empty() ? 1 : 0;
    ASSERT_EQ(wrong_with(graph, machine, *plan), "") << "case " << seed;
    const Seconds step = simulate(graph, machine, profile, *plan).step;
    EXPECT_GE(step.count(), step_bound(request).step.count() * (1 - 1e-9)) << "case " << seed;
  }
  std::cout << "  " << planned << " planned, " << ran_again << " with recomputation, " << ran_thrice
            << " with third runs, " << read_again << " of them with state\n";
  EXPECT_GT(planned, cases / 3);
  EXPECT_GT(ran_again, cases / 6);
  EXPECT_GT(ran_thrice, cases / 20);
  EXPECT_GT(read_again, 0U);
}

TEST(Checkpoints, DropNothingWhereEverythingFits) {
  const Planned planned(rig_chain(12), rig_machine(1e7, false));
  const PlanRequest request = planned.request(64 * kMega);
  const GuidedPlanning planning(request);
  const Checkpoints checkpoints(request, planning.uses(), planning.problem(), planning.multipliers());
  EXPECT_TRUE(checkpoints.choices(48).empty());
}

TEST(Checkpoints, CutTheChainIntoSegments) {
  const Planned planned(rig_chain(24), rig_machine(1e5, false));
  const PlanRequest request = planned.request(12 * kMega);
  const GuidedPlanning planning(request);
  const Checkpoints checkpoints(request, planning.uses(), planning.problem(), planning.multipliers());
  const auto discarded = checkpoints.discarded({4 * kMega, 1, 0});
  int kept = 0, in_a_row = 0, longest = 0;
  for (int i = 1; i < 20; ++i) {
    const TensorId tensor = find_tensor(planned.graph, "a" + std::to_string(i));
    const bool stays = discarded[tensor.index] == DiscardWindow{};
    kept += stays ? 1 : 0;
    in_a_row = stays ? 0 : in_a_row + 1;
    longest = std::max(longest, in_a_row);
  }
  EXPECT_GE(kept, 4);
  EXPECT_LE(longest, 4);
  EXPECT_GE(longest, 2);
}

/// Where moving a tensor takes a hundred times as long as making it.
TEST(Best, RunsSegmentsAgainWhereLinksAreSlow) {
  const Planned planned(counting_chain(24), rig_machine(1e4, false));
  const PlanRequest request = planned.request(12 * kMega);
  const auto best = make_plan("best", request);
  ASSERT_TRUE(best.ok()) << best.error().message;
  EXPECT_EQ(wrong_with(planned.graph, planned.machine, *best), "");
  EXPECT_GT(runs(*best), planned.graph.kernels.size() + 10);
  const Seconds compute = step_bound(request).compute;
  EXPECT_LT(best->prediction.step, 1.5 * compute);
  for (const char* other : {"prefetch", "sentinel+", "capuchin"}) {
    EXPECT_GT(make_plan(other, request).value().prediction.step, 2 * compute) << other;
  }
}

}  // namespace
}  // namespace terrace::best

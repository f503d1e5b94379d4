// SPDX-License-Identifier: Apache-2.0
// Which variant planners run where one needs a workspace and another does not.
#include <gtest/gtest.h>

#include "planners/baseline_rig.hpp"
#include "terrace/verify.hpp"

namespace terrace {
namespace {

/// A chain with a kernel in its middle that has two variants: one in three megabytes of workspace, one
/// without.
Graph with_choice(double large, double small) {
  Graph graph = rig_chain(4);
  Tensor scratch = graph.tensors[1];
  scratch.name = "scratch";
  scratch.kind = TensorKind::workspace;
  scratch.shape = {3 * kMega};
  scratch.bytes = {3 * kMega};
  graph.kernels[2].workspace = {static_cast<std::uint32_t>(graph.tensors.size())};
  graph.tensors.push_back(scratch);
  graph.kernels[2].variants = {{"large", {3 * kMega}, Seconds{large}}, {"small", {}, Seconds{small}}};
  return graph;
}

/// As what the kernel in the middle runs.
std::string chosen(const Graph& graph, std::uint64_t fast, const char* planner) {
  const Planned planned(graph, rig_machine(1e7, false));
  const auto plan = make_plan(planner, planned.request(fast));
  if (!plan) return plan.error().message;
  const auto verified = verify(planned.graph, planned.machine, *plan);
  if (!verified) return verified.error().message;
  for (const Instruction& instruction : plan->instructions) {
    const auto* run = std::get_if<Run>(&instruction);
    if (run != nullptr && run->kernel.index == 2) return planned.graph.kernels[2].variants[run->variant].name;
  }
  return "none";
}

constexpr const char* kPlanners[] = {"best",        "prefetch",      "sentinel",    "next-use", "lru",
                                     "autotm-sync", "autotm-static", "swapadvisor", "capuchin"};

TEST(VariantChoice, TakesTheFastestWhoseWorkspaceFits) {
  const Graph graph = with_choice(1, 2);
  for (const char* planner : kPlanners) {
    EXPECT_EQ(chosen(graph, 8 * kMega, planner), "large") << planner;
  }
}

TEST(VariantChoice, TakesTheSlowerOneWhereOnlyThatFits) {
  const Graph graph = with_choice(1, 2);
  EXPECT_EQ(least_budget(graph, rig_machine(1e7, false)).bytes, Bytes{3 * kMega});
  for (const char* planner : {"best", "prefetch", "sentinel", "next-use", "lru", "autotm-sync"}) {
    EXPECT_EQ(chosen(graph, 4 * kMega, planner), "small") << planner;
  }
}

TEST(VariantChoice, TakesTheOneWithoutAWorkspaceIfItIsFaster) {
  const Graph graph = with_choice(2, 1);
  for (const char* planner : kPlanners) EXPECT_EQ(chosen(graph, 8 * kMega, planner), "small") << planner;
}

/// They ask for the same memory, so that the planner itself decides.
TEST(VariantChoice, IsTheFastestWhereNoneHasAWorkspace) {
  Graph graph = rig_chain(4);
  graph.kernels[2].variants = {{"slow", {}, Seconds{2}}, {"quick", {}, Seconds{1}}};
  for (const char* planner : kPlanners) EXPECT_EQ(chosen(graph, 8 * kMega, planner), "quick") << planner;
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "terrace/operation.hpp"
#include "terrace/plan.hpp"
#include "verify/hand_made.hpp"

namespace terrace {
namespace {

using testing::HandMade;

TEST(PlanText, HasTheNamesOfGraphAndMachine) {
  HandMade it;
  it.plan.instructions.resize(7);
  it.plan.instructions.push_back(Copy{{{HandMade::w}, {HandMade::y}}, {0}, {2}, 12});
  it.plan.instructions.push_back(Free{{HandMade::s}, {0}});
  EXPECT_EQ(to_text(it.plan, it.graph, it.machine),
            "plan by hand, step 0 s, bound 0 s\n"
            "budget fast 1KiB\n"
            "budget slow 4KiB\n"
            "budget disk 8KiB\n"
            "start x fast @0\n"
            "start w disk @0\n"
            "     0 alloc w fast @128\n"
            "     1 copy w disk > fast #1\n"
            "     2 alloc y fast @384\n"
            "     3 alloc s fast @704\n"
            "     4 alloc e slow @0\n"
            "     5 wait #1\n"
            "     6 run forward as large (x fast, w fast, > y fast, > e slow, ~ s fast)\n"
            "     7 copy w, y fast > disk #12\n"
            "     8 free s fast\n");
}

TEST(PlanText, NamesLanesWhereThereAreSeveral) {
  HandMade it;
  it.machine.further_engines = {{{"cpu1", 1, 1e9, {}}, {{0}}}};
  const auto text = [&](const Instruction& one) { return to_text(one, it.graph, it.machine); };
  EXPECT_EQ(text(terrace::Run{{1}, 0, {{0}, {0}, {0}}, {1}, 13, {11, 12}}),
            "run update (w fast, y fast, > w fast) on cpu1 #13 after #11, #12");
  EXPECT_EQ(text(terrace::Run{{1}, 0, {{0}, {0}, {0}}, {2}, {}, {}}),
            "run update (w fast, y fast, > w fast) on engine[2]");
  EXPECT_EQ(text(Copy{{{HandMade::w}}, {0}, {2}, 14, {13}}), "copy w fast > disk #14 after #13");
}

TEST(PlanText, OfAWrongPlanHasNumbersForNames) {
  const HandMade it;
  EXPECT_EQ(to_text(Alloc{{77}, {9}, 1}, it.graph, it.machine), "alloc tensor[77] tier[9] @1");
  EXPECT_EQ(to_text(terrace::Run{{8}, 3, {{0}}}, it.graph, it.machine), "run kernel[8] as variant[3] (fast)");
  EXPECT_EQ(to_text(terrace::Run{{0}, 5, {{0}}}, it.graph, it.machine), "run forward as variant[5] (fast)");
}

TEST(Fingerprint, IsOfThisGraphOnEveryComputer) {
  EXPECT_EQ(fingerprint(HandMade::make_graph()), "4a28692f2575745c");
}

/// Whether the fingerprint tells the hand-made graph from the same with a change.
bool notices(void (*change)(Graph&)) {
  Graph graph = HandMade::make_graph();
  change(graph);
  return fingerprint(graph) != fingerprint(HandMade::make_graph());
}

TEST(Fingerprint, ChangesWithWhateverAPlanDependsOn) {
  EXPECT_TRUE(notices([](Graph& graph) { ++graph.tensors[2].bytes.count; }));
  EXPECT_TRUE(notices([](Graph& graph) { graph.tensors[1].persistent = false; }));
  EXPECT_TRUE(notices([](Graph& graph) { graph.tensors[2].kind = TensorKind::gradient; }));
  EXPECT_TRUE(notices([](Graph& graph) { graph.tensors[2].layout = "nChw16c"; }));
  EXPECT_TRUE(notices([](Graph& graph) { graph.kernels[0].inputs[0].tensor = {1}; }));
  EXPECT_TRUE(notices([](Graph& graph) { graph.kernels[0].inputs[0].shape = {10, 10}; }));
  EXPECT_TRUE(notices([](Graph& graph) { --graph.kernels[0].inputs[0].touched.count; }));
  EXPECT_TRUE(notices([](Graph& graph) { graph.kernels[0].operation = "other"; }));
  EXPECT_TRUE(notices([](Graph& graph) { graph.kernels[0].operation = to_string(Operation::add); }));
  EXPECT_TRUE(
      notices([](Graph& graph) { graph.kernels[0].attributes = to_attributes(AddAttributes{true}); }));
  EXPECT_TRUE(notices([](Graph& graph) { graph.kernels[0].workspace = {}; }));
  EXPECT_TRUE(notices([](Graph& graph) { graph.kernels[0].variants[0].time = Seconds{1}; }));
  EXPECT_TRUE(notices([](Graph& graph) { graph.kernels[0].variants.pop_back(); }));
  EXPECT_TRUE(notices([](Graph& graph) { graph.kernels[1].flops = 1; }));
  EXPECT_TRUE(notices([](Graph& graph) { std::swap(graph.kernels[1], graph.kernels[2]); }));
  EXPECT_TRUE(notices([](Graph& graph) { graph.results.clear(); }));
}

TEST(Fingerprint, DoesNotChangeWithNames) {
  EXPECT_FALSE(notices([](Graph& graph) {
    graph.name = graph.layers[0] = graph.tensors[0].name = graph.kernels[0].name = "other";
  }));
}

TEST(Fingerprint, OfAPlanChangesWithThePlan) {
  const Plan plan = HandMade::make_plan();
  Plan other = plan;
  other.remark = "in passing";
  EXPECT_EQ(fingerprint(plan), fingerprint(other));
  std::get<Alloc>(other.instructions[0]).offset += 64;
  EXPECT_NE(fingerprint(plan), fingerprint(other));
}

}  // namespace
}  // namespace terrace

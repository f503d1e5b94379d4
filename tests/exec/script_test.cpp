// SPDX-License-Identifier: Apache-2.0
#include "exec/script.hpp"

#include "exec/planned.hpp"

namespace terrace {
namespace {

struct Counts {
  std::size_t tensors = 0, copies = 0, moves = 0;
};

Counts count(const SlowTier& slow) {
  const Program program = compile(small_resnet(), 1).value();
  const Plan plan = spill_plan(program.graph, slow.machine);
  const OpenTiers tiers = OpenTiers::open({program.graph.name, slow.machine, plan.budget}).value();
  const Script script = resolve(program.graph, slow.machine, plan, tiers);
  Counts counts;
  for (const Instruction& instruction : plan.instructions) {
    if (const auto* copy = std::get_if<Copy>(&instruction)) counts.tensors += copy->tensors.size();
  }
  for (const Action& action : script.actions) {
    const auto* copy = std::get_if<CopyAction>(&action.what);
    if (copy == nullptr) continue;
    ++counts.copies;
    counts.moves += copy->moves.size();
  }
  return counts;
}

TEST(Script, MovesNeighboursAsOneWhereTheirPaddingIsTheSame) {
  const Counts counts = count(fake_memory());
  EXPECT_EQ(counts.moves, counts.copies);
  EXPECT_LT(counts.moves, counts.tensors);
}

TEST(Script, MovesNeighboursOneByOneWhereTheirPaddingDiffers) {
  const Counts counts = count(fake_blocks());
  EXPECT_GT(counts.moves, counts.copies);
  EXPECT_LE(counts.moves, counts.tensors);
}

}  // namespace
}  // namespace terrace

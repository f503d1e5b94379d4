// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/plan_interpreter.hpp"
#include "support/stress_factor.hpp"
#include "terrace/verify.hpp"
#include "verify/random_case.hpp"

namespace terrace {
namespace {

using testing::random_case;
using testing::RandomCase;

std::string first_violation(const RandomCase& it) {
  const auto found = violations(it.graph, it.machine, it.plan);
  return found.empty() ? "" : to_text(found.front(), it.graph, it.machine, it.plan);
}

TEST(RandomPlan, IsAcceptedAndGivesTheBytesOfPlainExecution) {
  for (std::uint64_t seed = 0; seed < 300U * stress_factor(); ++seed) {
    const RandomCase it = random_case(seed);
    ASSERT_TRUE(validate(it.graph).ok());
    ASSERT_EQ(first_violation(it), "") << "seed " << seed;
    const StepBytes plain = plain_steps(it.graph, 2);
    for (const CopyTiming timing : {CopyTiming::at_copy, CopyTiming::at_wait}) {
      const auto left = interpret(it.graph, it.machine, it.plan, timing, 2);
      ASSERT_TRUE(left.ok()) << left.error().message << ", seed " << seed;
      ASSERT_EQ(*left, plain) << "seed " << seed;
    }
  }
}

TEST(RandomPlan, IsAcceptedWithTheLeastBudget) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    RandomCase it = random_case(seed);
    it.plan = random_plan(it.graph, it.machine, least_random_budget(it.graph, it.machine), seed);
    ASSERT_EQ(first_violation(it), "") << "seed " << seed;
  }
}

TEST(RandomPlan, IsTheSameForTheSameSeed) {
  EXPECT_EQ(random_case(7).plan, random_case(7).plan);
  EXPECT_NE(random_case(7).plan.instructions, random_case(8).plan.instructions);
}

struct Habits {
  std::size_t repeated_runs = 0, joint_copies = 0, runs_beside_copies = 0, slow_operands = 0,
              empty_regions = 0;
};

void count_habits(const RandomCase& it, Habits& habits) {
  std::size_t flying = 0;
  std::vector<std::size_t> runs(it.graph.kernels.size());
  for (const Instruction& instruction : it.plan.instructions) {
    flying += std::holds_alternative<Copy>(instruction);
    flying -= std::holds_alternative<Wait>(instruction);
    if (const auto* copy = std::get_if<Copy>(&instruction)) habits.joint_copies += copy->tensors.size() > 1;
    if (const auto* alloc = std::get_if<Alloc>(&instruction))
      habits.empty_regions += it.graph[alloc->tensor].bytes.count == 0;
    if (const auto* run = std::get_if<Run>(&instruction)) {
      habits.runs_beside_copies += flying > 0;
      habits.repeated_runs += runs[run->kernel.index]++;
      for (const TierId tier : run->tiers) habits.slow_operands += tier.index > 0;
    }
  }
}

TEST(RandomPlan, DoesEverythingAPlanMayDo) {
  Habits habits;
  for (std::uint64_t seed = 0; seed < 100; ++seed) count_habits(random_case(seed), habits);
  EXPECT_GT(habits.repeated_runs, 10U);
  EXPECT_GT(habits.joint_copies, 20U);
  EXPECT_GT(habits.runs_beside_copies, 200U);
  EXPECT_GT(habits.slow_operands, 100U);
  EXPECT_GT(habits.empty_regions, 100U);
}

}  // namespace
}  // namespace terrace

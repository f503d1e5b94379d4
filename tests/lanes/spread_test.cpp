// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lanes/lane_case.hpp"
#include "migration/repack.hpp"
#include "support/long_tests.hpp"
#include "support/plan_interpreter.hpp"
#include "terrace/bounds.hpp"
#include "terrace/simulate.hpp"
#include "terrace/verify.hpp"

namespace terrace {
namespace {

using testing::spread_case;
using testing::SpreadCase;

TEST(Spread, KeepsEveryPlanSafeWhateverEnginesItsKernelsGet) {
  std::size_t after = 0, waits = 0;
  for (std::uint64_t seed = 0; seed < few_or_all<std::uint64_t>(300, 5'000); ++seed) {
    SCOPED_TRACE(seed);
    const SpreadCase it = spread_case(seed);
    ASSERT_TRUE(violations(it.graph, it.machine, it.serial).empty());
    const auto found = violations(it.graph, it.machine, it.plan);
    ASSERT_TRUE(found.empty()) << to_text(found.front(), it.graph, it.machine, it.plan);
    const StepBytes plain = plain_steps(it.graph, 2);
    for (const CopyTiming timing : {CopyTiming::at_copy, CopyTiming::at_wait})
      ASSERT_EQ(interpret(it.graph, it.machine, it.plan, timing, 2).value(), plain);
    for (const Instruction& one : it.plan.instructions) {
      const auto* copy = std::get_if<Copy>(&one);
      const auto* run = std::get_if<terrace::Run>(&one);
      after += (copy != nullptr && !copy->after.empty()) || (run != nullptr && !run->after.empty()) ? 1 : 0;
      waits += std::holds_alternative<Wait>(one) ? 1 : 0;
    }
  }
  EXPECT_GT(after, 100U) << "lanes meet";
  EXPECT_GT(waits, 100U);
}

TEST(Spread, LeavesAPlanAsItIsWhereNoKernelMoves) {
  const SpreadCase it = spread_case(7);
  EXPECT_EQ(spread(it.graph, it.machine, it.serial, [](KernelId) { return EngineId{}; }), it.serial);
}

/// Packing anew does not fit every plan: it keeps no tensors side by side, and regions of the start that come
/// and go may meet others. Whoever uses it asks the verifier, as here; what is accepted stays so when spread.
TEST(Spread, FreesLaterWhereThereIsRoom) {
  std::size_t later = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const SpreadCase it = spread_case(seed);
    const auto is_moved = [&](KernelId kernel) { return kernel.index % 3 == 1; };
    const Profile profile = estimate(it.graph, it.machine);
    const PlanRequest request{it.graph, it.machine, profile, {Bytes{1 << 24}, Bytes{1 << 24}}};
    const Plan late = with_offsets(request, with_late_frees(it.graph, it.serial, is_moved, 3));
    if (!violations(it.graph, it.machine, late, 1).empty()) continue;
    const Plan beside = spread(it.graph, it.machine, late,
                               [&](KernelId kernel) { return EngineId{is_moved(kernel) ? 1U : 0U}; });
    ASSERT_TRUE(violations(it.graph, it.machine, beside).empty());
    ASSERT_EQ(interpret(it.graph, it.machine, beside, CopyTiming::at_wait, 2).value(),
              plain_steps(it.graph, 2));
    later += late.instructions != it.serial.instructions ? 1 : 0;
  }
  EXPECT_GT(later, 10U);
}

/// Every wait and every `after` of a spread plan is dropped once; what the verifier still accepts gives the
/// same bytes in both extremes.
TEST(Spread, HasNoOrderThatTheVerifierTakesForGranted) {
  std::size_t refused = 0, accepted = 0;
  for (std::uint64_t seed = 0; seed < few_or_all<std::uint64_t>(60, 1'000); ++seed) {
    const SpreadCase it = spread_case(seed, 8);
    const StepBytes plain = plain_steps(it.graph, 1);
    for (std::size_t i = 0; i < it.plan.instructions.size(); ++i) {
      Plan mutant = it.plan;
      Instruction& one = mutant.instructions[i];
      if (auto* copy = std::get_if<Copy>(&one); copy != nullptr && !copy->after.empty()) {
        copy->after.pop_back();
      } else if (auto* run = std::get_if<terrace::Run>(&one); run != nullptr && !run->after.empty()) {
        run->after.pop_back();
      } else if (std::holds_alternative<Wait>(one)) {
        mutant.instructions.erase(mutant.instructions.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        continue;
      }
      if (!violations(it.graph, it.machine, mutant, 1).empty()) {
        ++refused;
        continue;
      }
      ++accepted;
      for (const CopyTiming timing : {CopyTiming::at_copy, CopyTiming::at_wait})
        ASSERT_EQ(interpret(it.graph, it.machine, mutant, timing, 1).value(), plain) << seed << " " << i;
    }
  }
  EXPECT_GT(refused, accepted);
}

TEST(Bounds, OfSeveralEnginesAreNotAboveAnyPlan) {
  std::size_t close = 0;
  for (std::uint64_t seed = 0; seed < few_or_all<std::uint64_t>(300, 5'000); ++seed) {
    SCOPED_TRACE(seed);
    const SpreadCase it = spread_case(seed);
    const Profile profile = estimate(it.graph, it.machine);
    const Bound bound = step_bound({it.graph, it.machine, profile, it.plan.budget});
    for (const Plan* plan : {&it.plan, &it.serial}) {
      const Timeline timeline = simulate(it.graph, it.machine, profile, *plan);
      ASSERT_LE(bound.step, timeline.step * (1 + 1e-12));
      ASSERT_LE(bound.moving, timeline.step * (1 + 1e-12));
      close += bound.step > timeline.step * 0.3 ? 1 : 0;
    }
    ASSERT_GT(bound.step, Seconds{0});
  }
  EXPECT_GT(close, 10U) << "a bound that is always far away proves nothing";
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// The verifier against a judge that goes through every course of a step: both accept the same plans.
#include <gtest/gtest.h>

#include <array>
#include <iostream>

#include "support/long_tests.hpp"
#include "terrace/verify.hpp"
#include "verify/lane_oracle.hpp"
#include "verify/lane_plans.hpp"

namespace terrace {
namespace {

using testing::kLaneChanges;
using testing::LaneCase;
using testing::LaneChange;
using testing::LaneMutation;
using testing::LaneOracle;
using testing::random_lane_case;

/// What the verifier says first; empty: it accepts.
std::string refusal(const LaneCase& it, const Plan& plan) {
  const auto found = violations(it.graph, it.machine, plan, 1);
  return found.empty() ? "" : to_text(found.front(), it.graph, it.machine, plan);
}

std::string text(const LaneCase& it, const Plan& plan) { return to_text(plan, it.graph, it.machine); }

bool has_several_lanes(const Plan& plan) {
  std::set<std::uint32_t> engines;
  for (const Instruction& one : plan.instructions) {
    if (const auto* run = std::get_if<terrace::Run>(&one)) engines.insert(run->engine.index);
  }
  return engines.size() > 1;
}

TEST(LaneAgreement, VerifierAcceptsExactlyWhatIsSafeInEveryCourse) {
  const std::size_t plans = few_or_all<std::size_t>(20'000, 100'000);
  std::size_t safe = 0, several = 0, safe_with_after = 0, states = 0;
  std::uint64_t seed = 1;
  for (std::size_t i = 0; i < plans; ++i) {
    const LaneCase it = random_lane_case(seed, i % 2 == 0 ? 85 : 35);
    LaneOracle oracle(it.graph, it.machine, it.plan);
    const std::string harm = oracle.harm(), refused = refusal(it, it.plan);
    ASSERT_EQ(harm.empty(), refused.empty())
        << "seed " << seed - 1 << "\noracle: " << harm << "\nverifier: " << refused << "\n"
        << text(it, it.plan);
    safe += harm.empty() ? 1 : 0;
    several += has_several_lanes(it.plan) ? 1 : 0;
    safe_with_after += harm.empty() && !has_one_lane(it.plan) ? 1 : 0;
    states += oracle.states();
  }
  std::cout << "  of " << plans << " plans " << safe << " are safe, " << safe_with_after
            << " of them with lanes; " << several << " use several engines; " << states / plans
            << " states each\n";
  // The generator makes both kinds, and they use what is new.
  EXPECT_GT(safe * 100, plans * 30);
  EXPECT_LT(safe * 100, plans * 70);
  EXPECT_GT(safe_with_after * 2, safe);
  EXPECT_GT(several * 3, plans);
}

TEST(LaneAgreement, NoHarmfulChangeOfASafePlanIsAccepted) {
  const std::size_t mutants = few_or_all<std::size_t>(20'000, 100'000);
  std::array<std::size_t, kLaneChanges> harmful{}, harmless{};
  std::uint64_t seed = 1'000'000'000;
  std::size_t done = 0;
  while (done < mutants) {
    const LaneCase it = random_lane_case(seed, 100, 14);
    if (!has_several_lanes(it.plan) || !refusal(it, it.plan).empty()) continue;
    for (unsigned i = 0; i < 2 * kLaneChanges; ++i) {
      const auto change = static_cast<LaneChange>(i % kLaneChanges);
      const Plan mutant = LaneMutation(seed * 100 + i).run(it.plan, change);
      if (mutant == it.plan) continue;
      ++done;
      const std::string harm = LaneOracle(it.graph, it.machine, mutant).harm();
      const std::string refused = refusal(it, mutant);
      ASSERT_EQ(harm.empty(), refused.empty()) << "seed " << seed - 1 << ", change " << i
                                               << "\noracle: " << harm << "\nverifier: " << refused << "\n"
                                               << text(it, mutant);
      ++(harm.empty() ? harmless : harmful)[i % kLaneChanges];
    }
  }
  for (unsigned i = 0; i < kLaneChanges; ++i) {
    std::cout << "  change " << i << ": harmful and refused " << harmful[i] << ", harmless and accepted "
              << harmless[i] << "\n";
    EXPECT_GT(harmful[i] * 50, harmful[i] + harmless[i]) << "a change that does no harm proves nothing";
  }
}

}  // namespace
}  // namespace terrace

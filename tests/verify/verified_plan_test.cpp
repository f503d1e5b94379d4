// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/random_machine.hpp"
#include "terrace/verify.hpp"
#include "verify/hand_made.hpp"

namespace terrace {
namespace {

using testing::HandMade;

HandMade with_fingerprints() {
  HandMade it;
  it.plan.graph = fingerprint(it.graph);
  it.plan.machine = fingerprint(it.machine);
  return it;
}

std::string refusal_by_hand(const HandMade& it) {
  const auto plan = verify(it.graph, it.machine, it.plan);
  return plan.ok() ? "accepted" : plan.error().message;
}

TEST(VerifiedPlan, IsThePlanThatWasProven) {
  const HandMade it = with_fingerprints();
  const auto proven = verify(it.graph, it.machine, it.plan);
  ASSERT_TRUE(proven.ok()) << proven.error().message;
  EXPECT_EQ(proven->plan(), it.plan);
}

TEST(VerifiedPlan, IsRefusedWithTheFirstViolation) {
  HandMade it = with_fingerprints();
  it.plan.instructions.erase(it.plan.instructions.begin() + 5);
  EXPECT_EQ(refusal_by_hand(it),
            "the plan by hand is refused: at instruction 5 (run forward as large (x fast, w fast, > y fast, "
            "> e slow, ~ s "
            "fast)): kernel forward reads w in fast, which a transfer fills that was not waited for");
}

TEST(VerifiedPlan, IsRefusedForAnotherGraph) {
  HandMade it = with_fingerprints();
  it.graph.tensors[0].bytes = Bytes{101};
  EXPECT_EQ(refusal_by_hand(it), "the plan by hand is refused: it was made for another graph (fingerprint " +
                                     it.plan.graph + ", here " + fingerprint(it.graph) +
                                     "); plan again for this graph");
}

TEST(VerifiedPlan, IsRefusedForAnotherMachine) {
  HandMade it = with_fingerprints();
  it.machine.tiers[0].capacity = Bytes{1 << 21};
  EXPECT_EQ(refusal_by_hand(it),
            "the plan by hand is refused: it was made for another machine (fingerprint " + it.plan.machine +
                ", here " + fingerprint(it.machine) + "); plan again for this machine");
}

TEST(RandomMachine, IsValidAndOfManyKinds) {
  std::size_t by_tiers[5] = {}, not_addressable = 0, coarse = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Machine machine = random_machine(seed);
    const auto valid = validate(machine);
    ASSERT_TRUE(valid.ok()) << valid.error().message;
    ++by_tiers[machine.tiers.size()];
    for (const MachineTier& tier : machine.tiers) {
      not_addressable += !tier.addressable;
      coarse += tier.granularity == Bytes{4096};
    }
  }
  for (const std::size_t tiers : {2U, 3U, 4U}) EXPECT_GT(by_tiers[tiers], 30U);
  EXPECT_GT(not_addressable, 100U);
  EXPECT_GT(coarse, 100U);
}

}  // namespace
}  // namespace terrace

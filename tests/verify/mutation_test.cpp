// SPDX-License-Identifier: Apache-2.0
#include "verify/mutation.hpp"

#include <gtest/gtest.h>

#include <array>
#include <iostream>

#include "support/plan_interpreter.hpp"
#include "support/stress_factor.hpp"
#include "terrace/verify.hpp"
#include "verify/random_case.hpp"

namespace terrace {
namespace {

using testing::Change;
using testing::kChanges;
using testing::Mutation;
using testing::random_case;
using testing::RandomCase;

struct Counts {
  std::size_t rejected = 0, accepted = 0;
  std::size_t harmless = 0;  ///< rejected, though neither interpretation shows harm
};

/// Whether both extremes of timing give the bytes of plain execution.
std::string harm_of(const RandomCase& it, const Plan& plan, const StepBytes& plain) {
  for (const CopyTiming timing : {CopyTiming::at_copy, CopyTiming::at_wait}) {
    const auto left = interpret(it.graph, it.machine, plan, timing, 2);
    if (!left) return left.error().message;
    if (*left != plain) return "other bytes";
  }
  return "";
}

class Mutants {
 public:
  /// Every kind of change to one random plan. Returns the first accepted one that does harm, in words.
  std::string try_all(std::uint64_t seed) {
    const RandomCase it = random_case(seed);
    const StepBytes plain = plain_steps(it.graph, 2);
    for (unsigned i = 0; i < 10 * kChanges; ++i) {
      const auto change = static_cast<Change>(i % kChanges);
      const Plan mutant = Mutation(it.graph, it.machine, seed * 1000 + i).run(it.plan, change);
      if (mutant == it.plan) continue;
      const bool accepted = violations(it.graph, it.machine, mutant, 1).empty();
      const std::string wrong = harm_of(it, mutant, plain);
      if (accepted && !wrong.empty()) {
        return "accepted, but " + wrong + ": " + to_string(change) + ", seed " + std::to_string(seed) +
               ", mutant " + std::to_string(i);
      }
      Counts& counts = counts_[i % kChanges];
      ++(accepted ? counts.accepted : counts.rejected);
      counts.harmless += !accepted && wrong.empty();
    }
    return "";
  }

  Counts total() const {
    Counts total;
    for (const Counts& counts : counts_) {
      total.rejected += counts.rejected;
      total.accepted += counts.accepted;
      total.harmless += counts.harmless;
    }
    return total;
  }

  void print() const {
    for (unsigned i = 0; i < kChanges; ++i) {
      std::cout << "  " << to_string(static_cast<Change>(i)) << ": rejected " << counts_[i].rejected
                << ", accepted " << counts_[i].accepted << ", rejected by rule alone " << counts_[i].harmless
                << "\n";
    }
    std::cout << "  in all: accepted and harmful 0, accepted and harmless " << total().accepted
              << ", rejected " << total().rejected << ", of which " << total().harmless
              << " changed no bit\n";
  }

 private:
  std::array<Counts, kChanges> counts_;
};

TEST(VerifierMutation, AcceptsNoAlteredPlanThatChangesABit) {
  Mutants mutants;
  for (std::uint64_t seed = 0; seed < 120U * stress_factor(); ++seed) {
    ASSERT_EQ(mutants.try_all(seed), "");
  }
  mutants.print();
  const Counts total = mutants.total();
  EXPECT_GE(total.rejected + total.accepted, 10'000U);
  // A verifier that refuses everything, or nothing, would prove nothing.
  EXPECT_GT(total.rejected, total.accepted);
  EXPECT_GT(total.accepted, 500U);
}

}  // namespace
}  // namespace terrace

// The solver behind the programs, on programs whose answers are known.
#include <gtest/gtest.h>

#include "optim/cbc.hpp"

namespace terrace::optim {
namespace {

class Cbc : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_cbc()) GTEST_SKIP() << "this build has no CBC";
  }
  static constexpr MilpLimits kLong{Seconds{600}};
};

/// Values 10, 13 and 7 with weights 3, 4 and 2 in a sack of 6: the last two.
TEST_F(Cbc, FillsASack) {
  Milp milp;
  const int a = milp.add_variable(Milp::Kind::binary, -10), b = milp.add_variable(Milp::Kind::binary, -13),
            c = milp.add_variable(Milp::Kind::binary, -7);
  const Term weights[] = {{a, 3}, {b, 4}, {c, 2}};
  milp.add_at_most(weights, 6);
  const MilpResult result = milp.solve(0, kLong);
  ASSERT_EQ(result.status, MilpStatus::proven);
  EXPECT_NEAR(result.objective, -20, 1e-6);
  EXPECT_NEAR(result.bound, -20, 1e-6);
  ASSERT_EQ(result.values.size(), 3U);
  EXPECT_NEAR(result.values[0], 0, 1e-6);
  EXPECT_NEAR(result.values[1], 1, 1e-6);
  EXPECT_NEAR(result.values[2], 1, 1e-6);
}

TEST_F(Cbc, ProvesThatThereIsNoSolution) {
  for (const auto kind : {Milp::Kind::binary, Milp::Kind::continuous}) {
    Milp milp;
    const Term both[] = {{milp.add_variable(kind, 1), 1}, {milp.add_variable(kind, 1), 1}};
    milp.add_at_most(both, 1);
    milp.add_equal(both, 2);
    EXPECT_EQ(milp.solve(0, kLong).status, MilpStatus::infeasible);
  }
  // Infeasible for integers alone: two of them that add up to a half.
  Milp milp;
  const Term both[] = {{milp.add_variable(Milp::Kind::binary, 1), 1},
                       {milp.add_variable(Milp::Kind::binary, 1), 1}};
  milp.add_equal(both, 0.5);
  EXPECT_EQ(milp.solve(0, kLong).status, MilpStatus::infeasible);
}

TEST_F(Cbc, PrintsNothing) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  for (const double total : {1.0, 0.5, 3.0}) {
    for (const auto kind : {Milp::Kind::binary, Milp::Kind::continuous}) {
      Milp milp;
      const Term both[] = {{milp.add_variable(kind, 1), 1}, {milp.add_variable(kind, 2), 1}};
      milp.add_equal(both, total);
      milp.add_at_most(both, 2);
      (void)milp.solve(0, kLong);
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace terrace::optim

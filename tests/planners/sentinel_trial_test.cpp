// SPDX-License-Identifier: Apache-2.0
// Test-and-trial over real steps (002 section 4.4.4), with the times given.
#include "planners/sentinel/trial.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace terrace::sentinel {
namespace {

TEST(Trial, IsDoneAtOnceWhereNothingIsLate) {
  const Trial trial({});
  EXPECT_TRUE(trial.done());
  EXPECT_EQ(trial.end(), "wait");
  EXPECT_EQ(trial.steps_left(), 0U);
}

TEST(Trial, TriesBothAnswersAndKeepsTheFaster) {
  Trial trial({7});
  EXPECT_EQ(trial.steps_left(), 2U);
  EXPECT_EQ(trial.end(), "wait");
  trial.took(Seconds{2});
  EXPECT_EQ(trial.end(), "leave:7");
  EXPECT_FALSE(trial.done());
  trial.took(Seconds{1});
  EXPECT_TRUE(trial.done());
  EXPECT_EQ(trial.end(), "leave:7");
}

TEST(Trial, WaitsWhereLeavingIsNoFaster) {
  Trial trial({7});
  trial.took(Seconds{1});
  trial.took(Seconds{1});
  EXPECT_TRUE(trial.done());
  EXPECT_EQ(trial.end(), "wait");
}

TEST(Trial, TakesOneIntervalAfterTheOtherAsDecidedSoFar) {
  Trial trial({2, 5});
  trial.took(Seconds{2});
  trial.took(Seconds{1});
  EXPECT_EQ(trial.end(), "leave:2");
  EXPECT_EQ(trial.steps_left(), 2U);
  trial.took(Seconds{1});
  EXPECT_EQ(trial.end(), "leave:2,5");
  trial.took(Seconds{3});
  EXPECT_TRUE(trial.done());
  EXPECT_EQ(trial.end(), "leave:2");
}

TEST(Trial, CountsTheShortestOfItsRepeats) {
  Trial trial({4}, 2);
  trial.took(Seconds{5});
  trial.took(Seconds{2});
  EXPECT_EQ(trial.end(), "leave:4");
  trial.took(Seconds{3});
  EXPECT_EQ(trial.end(), "leave:4");
  trial.took(Seconds{4});
  EXPECT_TRUE(trial.done());
  EXPECT_EQ(trial.end(), "wait");
}

TEST(Trial, SkipsIntervalsThatHaveNoChoice) {
  Trial trial({2, 5, 6});
  trial.skip();
  EXPECT_EQ(trial.decided(), 1U);
  EXPECT_EQ(trial.steps_left(), 4U);
  EXPECT_EQ(trial.leaving(), "leave:5");
  trial.took(Seconds{2});
  EXPECT_THROW(trial.skip(), std::logic_error) << "a step was spent on it";
  trial.took(Seconds{1});
  EXPECT_EQ(trial.leaving(), "leave:5,6");
  trial.skip();
  EXPECT_TRUE(trial.done());
  EXPECT_EQ(trial.end(), "leave:5");
  EXPECT_THROW(trial.leaving(), std::logic_error);
}

TEST(Trial, KnowsWhatAStepTakesAsDecidedLast) {
  Trial trial({2, 5});
  EXPECT_EQ(trial.best(), Seconds::max());
  for (const double time : {3, 2}) trial.took(Seconds{time});
  EXPECT_EQ(trial.best(), Seconds{2});
  for (const double time : {4, 5}) trial.took(Seconds{time});
  EXPECT_EQ(trial.best(), Seconds{4}) << "the machine is slower by now";
}

TEST(Trial, TakesNoStepOnceItIsDone) {
  Trial trial({});
  EXPECT_THROW(trial.took(Seconds{1}), std::logic_error);
}

}  // namespace
}  // namespace terrace::sentinel

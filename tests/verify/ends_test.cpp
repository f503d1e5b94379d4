// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "verify/verdict.hpp"

namespace terrace {
namespace {

using namespace testing;

TEST(Verify, RejectsAStartThatDoesNotSuitTheGraph) {
  const auto start = [](const std::vector<Alloc>& regions) {
    return first(verdict([&](HandMade& it) { it.plan.start = regions; }));
  };
  const Alloc input{x, fast, 0}, weight{w, disk, 0};
  EXPECT_EQ(start({input}), "at the start: w has no region, but outlives the step");
  EXPECT_EQ(start({weight}), "at the start: x has no region, but outlives the step");
  EXPECT_EQ(start({{x, disk, 4096}, weight}),
            "at the start: the input x starts in disk, where it cannot be filled in place");
  EXPECT_EQ(start({input, weight, {x, slow, 512}}),
            "at the start: the input x has 2 regions, but is filled in one");
  EXPECT_EQ(start({input, weight, {y, slow, 512}}),
            "at the start: y has a region, but does not outlive a step");
  EXPECT_EQ(start({input, weight, {w, disk, 4096}}), "at the start: w has a region in disk twice");
  EXPECT_EQ(
      start({input, weight, {w, fast, 64}}),
      "at the start: w at offset 64 of fast with 256 bytes overlaps x, which has 128 bytes at offset 0");
}

TEST(Verify, LetsAConstantStartWhereAnyPersistentTensorMay) {
  EXPECT_EQ(verdict([](HandMade& it) { it.graph[w].kind = TensorKind::input; }), "");
  EXPECT_NE(verdict([](HandMade& it) {
              it.graph[w].kind = TensorKind::input;
              it.graph[w].persistent = false;
            }),
            "");
}

TEST(Verify, RejectsAnEndThatIsNotTheStart) {
  EXPECT_EQ(without(19), "at the end: w still has a region in fast, which the start does not have");
  EXPECT_EQ(verdict([](HandMade& it) {
              it.plan.instructions.push_back(Free{x, fast});
            }),
            "at the end: x in fast is gone, which the next step starts with");
  EXPECT_EQ(verdict([](HandMade& it) {
              it.plan.instructions.push_back(Free{x, fast});
              it.plan.instructions.push_back(Alloc{x, fast, 128});
            }),
            "at the end: x in fast is at offset 128, but the next step starts with it at 0");
  EXPECT_EQ(
      verdict([](HandMade& it) {
        it.plan.instructions.erase(it.plan.instructions.begin() + 18);
        it.plan.instructions.erase(it.plan.instructions.begin() + 12);
      }),
      "at the end: w in disk holds the value from before the step, but the step leaves the value of write 1");
}

TEST(Verify, InputsMayHoldAnythingAtTheEnd) {
  EXPECT_EQ(verdict([](HandMade& it) {
              it.plan.instructions.push_back(Free{x, fast});
              it.plan.instructions.push_back(Alloc{x, fast, 0});
            }),
            "");
}

TEST(Verify, RejectsResultsThatAreNotAtHand) {
  EXPECT_EQ(verdict([](HandMade& it) {
              it.plan.instructions.push_back(Free{z, fast});
            }),
            "at the end: the result z is in no tier that can be read in place");
  EXPECT_EQ(
      verdict([](HandMade& it) {
        it.plan.instructions.push_back(Alloc{z, slow, 0});
      }),
      "at the end: the result z holds nothing defined in slow, but the step leaves the value of write 1");
}

TEST(Verify, RejectsAStepThatLeavesAKernelOut) {
  EXPECT_EQ(first(without(15)), "at the end: kernel last never runs");
}

TEST(Verify, ListsNoMoreThanTheLimit) {
  HandMade it;
  it.plan.instructions.clear();
  EXPECT_EQ(violations(it.graph, it.machine, it.plan).size(), 5U);
  EXPECT_EQ(violations(it.graph, it.machine, it.plan, 2).size(), 2U);
  EXPECT_THROW(violations(it.graph, it.machine, it.plan, 0), std::logic_error);
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "terrace/array.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace terrace {
namespace {

struct ArrayTest : testing::Test {
  Manager manager{{"dram:1MiB", "fake:8MiB,blocks"}, "LMP"};
};

TEST_F(ArrayTest, HoldsMoreThanFastMemory) {
  std::vector<array<int>> arrays;
  for (int i = 0; i < 30; ++i) arrays.emplace_back(manager, 50'000, i);
  for (int i = 0; i < 30; ++i) {
    const auto view = arrays[i].read();
    EXPECT_EQ(std::accumulate(view.begin(), view.end(), 0L), 50'000L * i);
  }
}

TEST_F(ArrayTest, GivesItsRoomBack) {
  { array<double> a(manager, 1000); }
  EXPECT_EQ(manager.statistics().objects, 0u);
}

TEST_F(ArrayTest, MovesLikeAValue) {
  array<int> a(manager, 10, 7);
  array<int> b = std::move(a);
  EXPECT_EQ(a.size(), 0u);
  EXPECT_EQ(b.read()[9], 7);
  array<int> c(manager, 5, 1);
  c = std::move(b);
  EXPECT_EQ(c.size(), 10u);
}

TEST_F(ArrayTest, AssignmentGivesTheOldRoomBackAtOnce) {
  array<int> a(manager, 10, 1), b(manager, 20, 2);
  a = std::move(b);
  EXPECT_EQ(manager.statistics().objects, 1u);
  EXPECT_EQ(a.read()[19], 2);
}

TEST_F(ArrayTest, RefusesACountThatOverflowsItsBytes) {
  try {
    array<double> a(manager, std::size_t{1} << 62);
    FAIL();
  } catch (const ResultError& refused) {
    EXPECT_EQ(refused.error().code, ErrorCode::too_large);
  }
  EXPECT_THROW(array<double>(manager, 0), ResultError);
}

TEST_F(ArrayTest, EmptyHandlesTakeHintsAndRefuseViews) {
  array<int> none;
  none.will_read();
  none.retire();
  EXPECT_EQ(none.try_read().error().code, ErrorCode::invalid_argument);
  vector<int> v(manager);
  v.archive();
  v.push_back(3);
  vector<int> w = std::move(v);
  EXPECT_TRUE(v.empty());
  w.push_back(w.read()[0]);
  EXPECT_EQ(w.read()[1], 3);
  w.retire();
  EXPECT_THROW((void)w.read(), ResultError);
}

TEST_F(ArrayTest, RefusesViewsOfARetiredArray) {
  array<int> a(manager, 10, 7);
  a.retire();
  EXPECT_EQ(a.try_read().error().code, ErrorCode::retired);
  EXPECT_THROW(a.write(), ResultError);
}

TEST_F(ArrayTest, ViewsKeepTheArrayInPlace) {
  array<int> a(manager, 100'000, 7);
  const auto view = a.read();
  std::vector<array<int>> others;
  for (int i = 0; i < 20; ++i) others.emplace_back(manager, 50'000, i);
  EXPECT_EQ(view[99'999], 7);
  EXPECT_EQ(view.tier(), TierId{0});
}

TEST_F(ArrayTest, SaysWhatIsInTheWayWhenAllFastMemoryIsPinned) {
  array<int> a(manager, 200'000, 1);
  array<int> b(manager, 200'000, 2);
  const auto view = a.read();
  const auto refused = b.try_read();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("largest hole"), std::string::npos) << refused.error().message;
}

TEST_F(ArrayTest, VectorGrowsAndKeepsItsElements) {
  vector<int> v(manager);
  EXPECT_TRUE(v.empty());
  for (int i = 0; i < 10'000; ++i) v.push_back(i);
  v.resize(10'005, -1);
  ASSERT_EQ(v.size(), 10'005u);
  const auto view = v.read();
  ASSERT_EQ(view.size(), v.size());
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ(view[i], i);
  EXPECT_EQ(view[10'004], -1);
}

TEST_F(ArrayTest, VectorAppendsManyAtOnce) {
  vector<int> v(manager);
  std::vector<int> part(1000);
  std::iota(part.begin(), part.end(), 0);
  v.append(part);
  v.append(part);
  EXPECT_EQ(v.size(), 2000u);
  EXPECT_EQ(v.read()[1999], 999);
}

TEST(ManagerFromSpecs, ReportsTheFirstWrongSpec) {
  try {
    Manager manager({"dram:1MiB", "drum:1MiB"}, "LM");
    FAIL();
  } catch (const ResultError& error) {
    EXPECT_NE(std::string(error.what()).find("drum"), std::string::npos);
  }
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "terrace/recency.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

constexpr TierId kFast{0}, kSlow{1};
const auto anyone = [](ObjectId) { return true; };

ObjectId object(std::uint32_t index) { return {index, 1}; }

std::vector<std::uint32_t> order(const Recency& recency, TierId tier) {
  std::vector<std::uint32_t> indices;
  recency.coldest(tier, [&](ObjectId id) { return indices.push_back(id.index), false; });
  return indices;
}

Recency with(std::uint32_t count) {
  Recency recency;
  for (std::uint32_t i = 0; i < count; ++i) recency.add(object(i), kFast);
  return recency;
}

TEST(Recency, LeastRecentlyUsedComesFirst) {
  Recency recency = with(3);
  recency.touch(object(0));
  EXPECT_EQ(order(recency, kFast), (std::vector<std::uint32_t>{1, 2, 0}));
}

TEST(Recency, ArchivedComesBeforeEverythingElse) {
  Recency recency = with(4);
  recency.archive(object(3));
  recency.archive(object(1));
  EXPECT_EQ(order(recency, kFast), (std::vector<std::uint32_t>{3, 1, 0, 2}));
  EXPECT_TRUE(recency.archived(object(3)));
}

TEST(Recency, UseEndsArchiving) {
  Recency recency = with(2);
  recency.archive(object(1));
  recency.touch(object(1));
  EXPECT_EQ(order(recency, kFast), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_FALSE(recency.archived(object(1)));
}

TEST(Recency, KeepsTiersApartAndArchivedStaysArchived) {
  Recency recency = with(3);
  recency.archive(object(1));
  recency.move(object(1), kSlow);
  recency.move(object(2), kSlow);
  EXPECT_EQ(order(recency, kFast), (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(order(recency, kSlow), (std::vector<std::uint32_t>{1, 2}));
}

TEST(Recency, ForgetsWhatIsRemovedAndTakesTheIndexAnew) {
  Recency recency = with(2);
  recency.remove(object(0));
  EXPECT_THROW(recency.touch(object(0)), std::logic_error);
  recency.add(ObjectId{0, 2}, kFast);
  EXPECT_EQ(order(recency, kFast), (std::vector<std::uint32_t>{1, 0}));
  EXPECT_THROW(recency.touch(object(0)), std::logic_error) << "the old name must stay dead";
}

TEST(Recency, SkipsWhatIsNotWanted) {
  Recency recency = with(3);
  EXPECT_EQ(recency.coldest(kFast, [](ObjectId id) { return id.index == 1; }), object(1));
  EXPECT_EQ(recency.coldest(kSlow, anyone), std::nullopt);
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <thread>

#include "ann/made_vectors.hpp"
#include "terrace/ann.hpp"
#include "terrace/tier.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace::ann {
namespace {

using namespace literals;

Vectors part_of(const Vectors& vectors, std::size_t from, std::size_t to) {
  const auto at = [&](std::size_t row) {
    return vectors.values.begin() + static_cast<std::ptrdiff_t>(row * vectors.dimension);
  };
  return {vectors.dimension, {at(from), at(to)}};
}

class Insertion : public testing::Test {
 protected:
  double recall_of(const Index& index, std::uint32_t ef0 = 60) const {
    return recall(index.search(queries_, 10, {.ef1 = 20, .ef0 = ef0}).value(), truth_, 10);
  }
  const Vectors vectors_ = generate(mixture(3000, 24)), queries_ = generate(mixture(100, 24), 1);
  const Neighbours truth_ = exact_neighbours(vectors_, queries_, 10, Metric::l2).value();
};

TEST_F(Insertion, FindsNearlyWhatAWholeBuildFinds) {
  for (const std::uint32_t codes : {0U, 6U}) {
    const double whole = recall_of(Index::build(vectors_, small_build(codes)).value());
    for (const std::size_t first : {300U, 1500U, 2700U}) {
      Index index = Index::build(part_of(vectors_, 0, first), small_build(codes)).value();
      ASSERT_TRUE(index.add(part_of(vectors_, first, 2900), 60).ok());
      ASSERT_TRUE(index.add(part_of(vectors_, 2900, 3000), 60).ok());
      EXPECT_EQ(index.size().vectors, 3000U);
      EXPECT_GE(recall_of(index), whole - 0.02) << first << " " << codes;
    }
  }
}

TEST_F(Insertion, IntoAnEmptyIndexBuildsIt) {
  Index index = Index::build(Vectors{24, {}}, small_build()).value();
  ASSERT_TRUE(index.add(vectors_, 60).ok());
  EXPECT_EQ(index.search(queries_, 10, {}).value(),
            Index::build(vectors_, small_build()).value().search(queries_, 10, {}).value());
}

TEST_F(Insertion, FindsEachAddedVectorByItself) {
  Index index = Index::build(part_of(vectors_, 0, 2500), small_build()).value();
  ASSERT_TRUE(index.add(part_of(vectors_, 2500, 3000)).ok());
  const Neighbours found = index.search(part_of(vectors_, 2500, 3000), 1, {.ef0 = 100}).value();
  std::size_t right = 0;
  for (std::uint32_t i = 0; i < 500; ++i) right += found[i][0].id == 2500 + i;
  EXPECT_GE(right, 499U);
}

TEST_F(Insertion, IsSavedAndSearchedOnADisk) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "index";
  for (const std::uint32_t codes : {0U, 6U}) {
    Index index = Index::build(part_of(vectors_, 0, 2000), small_build(codes)).value();
    ASSERT_TRUE(index.add(part_of(vectors_, 2000, 3000)).ok());
    ASSERT_TRUE(index.remove(2999).ok());
    ASSERT_TRUE(index.save(path).ok());
    const Neighbours expected = index.search(queries_, 10, {.ef1 = 20, .ef0 = 40}).value();
    Index disk = Index::open(path, {.placement = Placement::disk}).value();
    EXPECT_EQ(disk.search(queries_, 10, {.ef1 = 20, .ef0 = 40}).value(), expected);
    EXPECT_EQ(disk.size().removed, 1U);
    EXPECT_NE(disk.add(queries_).error().message.find("open it in memory"), std::string::npos);
  }
}

TEST_F(Insertion, KeepsRecallWhileHalfIsRemovedAndReplaced) {
  Index index = Index::build(part_of(vectors_, 0, 1500), small_build()).value();
  for (std::uint32_t id = 0; id < 1500; ++id) ASSERT_TRUE(index.remove(id).ok());
  ASSERT_TRUE(index.add(part_of(vectors_, 1500, 3000), 60).ok());
  const Vectors left = part_of(vectors_, 1500, 3000);
  const Neighbours truth = exact_neighbours(left, queries_, 10, Metric::l2).value();
  Neighbours found = index.search(queries_, 10, {.ef1 = 20, .ef0 = 60}).value();
  for (auto& list : found) {
    ASSERT_EQ(list.size(), 10U);
    for (Neighbour& one : list) {
      ASSERT_GE(one.id, 1500U);
      one.id -= 1500;
    }
  }
  EXPECT_GE(recall(found, truth, 10), 0.97);
}

TEST_F(Insertion, OfEqualVectorsNamesThemAll) {
  Index index = Index::build(part_of(vectors_, 0, 500), small_build()).value();
  ASSERT_TRUE(index.add(part_of(vectors_, 7, 8)).ok());
  Vectors twice = part_of(vectors_, 900, 901);
  twice.values.insert(twice.values.end(), twice.values.begin(), twice.values.begin() + 24);
  ASSERT_TRUE(index.add(twice).ok());
  EXPECT_EQ(index.size().vectors, 503U);
  EXPECT_EQ(index.size().nodes, 501U);
  const auto ids_near = [&](std::size_t row) {
    std::vector<std::uint32_t> ids;
    const Neighbours found = index.search(part_of(vectors_, row, row + 1), 2, {}).value();
    for (const Neighbour& one : found[0]) ids.push_back(one.id);
    return ids;
  };
  EXPECT_EQ(ids_near(7), (std::vector<std::uint32_t>{7, 500}));
  EXPECT_EQ(ids_near(900), (std::vector<std::uint32_t>{501, 502}));
}

TEST_F(Insertion, RefusesWhatDoesNotFitAndStaysAsItWas) {
  const auto tier = open_tier("dram:150KiB").value();
  Index index = Index::build(part_of(vectors_, 0, 1200), small_build(), tier.get()).value();
  const Neighbours before = index.search(queries_, 10, {}).value();
  const auto complaint = [&](const Vectors& vectors) {
    const auto added = index.add(vectors);
    return added.ok() ? std::string("none") : added.error().message;
  };
  EXPECT_NE(complaint(vectors_).find("give it more"), std::string::npos);
  EXPECT_NE(complaint(generate(mixture(3, 5))).find("cannot be added to an index of 24"), std::string::npos);
  Vectors broken = part_of(vectors_, 0, 2);
  broken.values[30] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(complaint(broken), "none");
  EXPECT_EQ(complaint(Vectors{24, {}}), "none");
  EXPECT_EQ(index.size().vectors, 1200U);
  EXPECT_EQ(index.search(queries_, 10, {}).value(), before);
}

TEST_F(Insertion, BesideSearchesKeepsThemWhole) {
  BuildOptions options = small_build();
  options.searchers = 2;
  Index index = Index::build(part_of(vectors_, 0, 1000), options).value();
  {
    const std::jthread other([&] {
      for (int i = 0; i < 4; ++i) {
        const Neighbours found = index.search(queries_, 10, {}).value();
        for (const auto& list : found) EXPECT_EQ(list.size(), 10U);
      }
    });
    for (std::size_t row = 1000; row < 1400; row += 100)
      ASSERT_TRUE(index.add(part_of(vectors_, row, row + 100), 40).ok());
  }
  EXPECT_EQ(index.size().vectors, 1400U);
}

}  // namespace
}  // namespace terrace::ann

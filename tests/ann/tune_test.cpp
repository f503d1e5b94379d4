// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ann/made_vectors.hpp"
#include "ann/neighbour_file.hpp"
#include "terrace/ann.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace::ann {
namespace {

using namespace literals;

class Tuning : public testing::Test {
 protected:
  Tuning() : index_(Index::build(vectors_, options()).value()) {}
  static BuildOptions options() {
    BuildOptions made;
    made.links = 8;
    made.ef_construction = 60;
    made.fast = 200_KB;
    return made;
  }

  // No clock decides here: a minute is always enough and no time never is.
  const Vectors vectors_ = generate(mixture(3000, 24)), learnt_ = generate(mixture(150, 24), 1),
                other_ = generate(mixture(150, 24), 2);
  const Neighbours truth_ = exact_neighbours(vectors_, learnt_, 10, Metric::l2).value();
  const Index index_;
};

TEST_F(Tuning, KeepsItsPromiseForQueriesItHasNotSeen) {
  const auto truth = exact_neighbours(vectors_, other_, 10, Metric::l2).value();
  for (const double wanted : {0.8, 0.9, 0.95, 0.98}) {
    const TunedSearch tuned =
        index_.tune(learnt_, truth_, {.recall = wanted, .latency = Seconds{60}}).value();
    EXPECT_GE(tuned.recall, wanted);
    EXPECT_GE(recall(index_.search(other_, 10, tuned.options).value(), truth, 10), wanted);
    EXPECT_EQ(tuned.in_time, tuned.settings);
    EXPECT_GE(tuned.tried, 1U);
  }
}

TEST_F(Tuning, ChoosesAWideBeamOnADiskAndANarrowOneInMemory) {
  const TemporaryFolder folder;
  index_.save(folder.path() / "index").value();
  const Index disk = Index::open(folder.path() / "index", {.placement = Placement::disk}).value();
  TuneGoal goal{.recall = 0.7, .latency = Seconds{60}};
  const Vectors few{24, {learnt_.values.begin(), learnt_.values.begin() + 20 * 24}};
  const Neighbours truth(truth_.begin(), truth_.begin() + 20);
  const TunedSearch there = disk.tune(few, truth, goal).value();
  EXPECT_GT(there.options.beam, 1U);
  EXPECT_EQ(there.options.ahead, there.options.beam);
  EXPECT_GE(there.recall, 0.7);
  const TunedSearch here = index_.tune(few, truth, goal).value();
  EXPECT_EQ(here.options.beam, 1U);
  EXPECT_GT(there.settings, here.settings) << "every beam was tried";
  goal.beam = 2;
  EXPECT_EQ(disk.tune(few, truth, goal).value().options.beam, 2U);
}

TEST_F(Tuning, SaysWhatTheBestIsWhereNothingKeepsThePromise) {
  const auto late = index_.tune(learnt_, truth_, {.latency = Seconds{0}});
  ASSERT_FALSE(late.ok());
  EXPECT_NE(late.error().message.find("the fastest takes"), std::string::npos) << late.error().message;
  Neighbours impossible = truth_;
  for (auto& list : impossible)
    for (Neighbour& one : list) one = {one.id + 100'000, -1};
  const auto never = index_.tune(learnt_, impossible, {.latency = Seconds{60}});
  ASSERT_FALSE(never.ok());
  EXPECT_NE(never.error().message.find("the best has 0.0000"), std::string::npos) << never.error().message;
  EXPECT_NE(index_.tune(learnt_, {}, {}).error().message.find("150 queries and 0 answers"),
            std::string::npos);
}

TEST(Equation, IsThatOfThePaper) {
  const WorkTimes times{Seconds{183e-9}, Seconds{421e-9}};
  EXPECT_DOUBLE_EQ(equation_3_1(10, 2, 30, 4, times).count(), 10 * 30 * 183e-9 + 3 * 2 * 30 * 421e-9);
  EXPECT_DOUBLE_EQ(equation_3_1(8, 0, 30, 4, times).count(), 8 * 30 * 183e-9);
}

TEST(NeighbourFile, ReadsBackWhatItWroteAndRefusesTheRest) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "truth.ibin";
  const Neighbours neighbours{{{1, 0.5F}, {2, 1}}, {{7, 2}, {0, 3}}};
  ASSERT_TRUE(write_neighbours(path, neighbours).ok());
  EXPECT_EQ(read_neighbours(path).value(), neighbours);
  ASSERT_TRUE(write_neighbours(path, {}).ok());
  EXPECT_TRUE(read_neighbours(path)->empty());
  const auto complaint = [](std::initializer_list<std::uint32_t> words) {
    const auto parsed = parse_neighbours(std::as_bytes(std::span(words.begin(), words.size())), "F");
    return parsed.ok() ? std::string("none") : parsed.error().message;
  };
  EXPECT_NE(complaint({1}).find("no header"), std::string::npos);
  EXPECT_NE(complaint({1, 1, 5}).find("declares 1 times 1"), std::string::npos);
  EXPECT_NE(complaint({0xFFFFFFFF, 0xFFFFFFFF, 5}).find("declares"), std::string::npos);
  EXPECT_NE(complaint({0xFFFFFFFF, 0}).find("holds no neighbour"), std::string::npos);
}

}  // namespace
}  // namespace terrace::ann

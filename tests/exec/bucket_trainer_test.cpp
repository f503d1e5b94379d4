// SPDX-License-Identifier: Apache-2.0
#include "train/bucket_trainer.hpp"

#include <gtest/gtest.h>

#include "exec/nets.hpp"
#include "math/shape.hpp"
#include "train/padded_data.hpp"

namespace terrace {
namespace {

BucketRequest request_of(std::vector<std::int64_t> sizes) {
  BucketRequest request;
  request.sizes = std::move(sizes);
  request.graph_of = [](std::int64_t size) -> Result<Graph> { return small_lstm(size); };
  request.threads = 1;
  return request;
}

TEST(BucketTrainer, MakesABucketWhenTheFirstInputOfItsSizeComes) {
  int made = 0;
  BucketRequest request = request_of({2, 4, 7});
  request.graph_of = [&](std::int64_t size) -> Result<Graph> { return ++made, small_lstm(size); };
  BucketTrainer buckets = BucketTrainer::start(std::move(request)).value();
  EXPECT_EQ(made, 1);
  EXPECT_TRUE(buckets.largest().number);
  step(buckets.trainer(), 0);
  buckets.use(3).value();
  EXPECT_EQ(made, 2);
  EXPECT_EQ(buckets.current().size, 4);
  EXPECT_EQ(buckets.current().made_at, 1U);
  EXPECT_EQ(buckets.trainer().integer_input("tokens").size(), 12U);
  EXPECT_FALSE(buckets.buckets()[0].number);
  for (const std::int64_t length : {7, 4, 6, 3}) {
    buckets.use(length).value();
    step(buckets.trainer(), 1);
  }
  EXPECT_EQ(made, 2) << "it is kept";
  EXPECT_EQ(buckets.switches().size(), 5U);
  EXPECT_EQ(buckets.trainer().steps_done(), 5U);
}

TEST(BucketTrainer, SaysWhichBucketCannotBeMadeAndGoesOnWithout) {
  BucketRequest request = request_of({2, 7});
  request.graph_of = [](std::int64_t size) -> Result<Graph> {
    if (size == 2) return Error{ErrorCode::invalid_argument, "there is no such graph"};
    return small_lstm(size);
  };
  BucketTrainer buckets = BucketTrainer::start(std::move(request)).value();
  const auto used = buckets.use(1);
  ASSERT_FALSE(used);
  EXPECT_EQ(used.error().message, "bucket 2: there is no such graph");
  EXPECT_EQ(buckets.current().size, 7);
  step(buckets.trainer(), 0);
}

TEST(PaddedData, PadsEachStepToTheGraphThatIsTrained) {
  const Lengths lengths = Lengths::read("2-7").value();
  for (const auto& [axis, make] : {std::pair{0U, +[](std::int64_t n) { return small_lstm(n); }},
                                   std::pair{1U, +[](std::int64_t n) { return small_gpt(n); }}}) {
    Trainer trainer = start(make(7));
    PaddedData data(trainer.program().graph, 1, lengths, axis);
    for (std::uint64_t step = 0; step < 20; ++step) {
      data.fill(step, trainer);
      const auto tokens = trainer.integer_input("tokens"), target = trainer.integer_input("target");
      const std::size_t batch = tokens.size() / 7;
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        const auto at = static_cast<std::int64_t>(axis == 0 ? i / batch : i % 7);
        const bool padding = at >= data.length(step);
        EXPECT_EQ(target[i] == math::kIgnoredLabel, padding) << i;
        EXPECT_TRUE(tokens[i] == 0 || !padding) << i;
      }
    }
  }
}

/// What comes after a sequence changes nothing in it: padding is for the graph's sake alone.
TEST(PaddedData, LeavesTheLossOfRecurrentNetworksAsItIs) {
  const Lengths lengths = Lengths::read("4-4").value();
  Trainer exact = start(small_lstm(4)), padded = start(small_lstm(7));
  PaddedData data(exact.program().graph, 1, lengths, 0);
  for (std::uint64_t i = 0; i < 3; ++i) {
    float loss[2] = {};
    for (Trainer* each : {&exact, &padded}) {
      data.fill(i, *each);
      each->step();
      loss[each == &exact ? 0 : 1] = each->result(0)[0];
    }
    EXPECT_NEAR(loss[0], loss[1], 1e-5) << i;
  }
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// `terrace train --lengths` as a user meets it.
#include <fmt/format.h>

#include "cli/prepared_cache.hpp"
#include "support/long_tests.hpp"

namespace terrace {
namespace {

using test::Outcome;

class TrainOnChangingLengths : public test::PreparedProgram {};

const std::string kTrained = "train lstm --batch 1 --threads 1 ";

TEST_F(TrainOnChangingLengths, GivesTheSameBitsAndTellsItsBuckets) {
  const int longest = few_or_all(4, 6), count = few_or_all(2, 3), wanted = few_or_all(6, 8);
  const Json json = json_of(fmt::format("{}--lengths 1-{} --buckets {} --steps {} --fast 80% --same-bits",
                                        kTrained, longest, count, wanted));
  EXPECT_EQ(json.at("same_bits"), true);
  const Json& buckets = json.at("buckets");
  ASSERT_EQ(buckets.size(), static_cast<std::size_t>(count));
  EXPECT_EQ(buckets.back().at("sequence"), longest);
  EXPECT_EQ(buckets.back().at("made_at_step"), 0);
  std::int64_t steps = 0;
  for (const Json& bucket : buckets) {
    const auto here = bucket.at("steps").get<std::int64_t>();
    steps += here;
    EXPECT_EQ(bucket.at("median_step_seconds").is_null(), here == 0);
    EXPECT_EQ(bucket.at("predicted_step_seconds").is_null(), bucket.at("made_at_step").is_null());
    EXPECT_TRUE(here == 0 || bucket.at("predicted_step_seconds") > 0);
  }
  EXPECT_EQ(steps, wanted);
  EXPECT_GT(json.at("switches"), 0);
  EXPECT_EQ(json.at("loss").size(), static_cast<std::size_t>(wanted));
}

TEST_F(TrainOnChangingLengths, SplitsKernelsThatDoNotFit) {
  tree_.write("work/lengths", "2\n5\n");
  const Json json =
      json_of(kTrained + "--lengths lengths --steps 2 --fast 40MiB --same-bits --planner prefetch");
  EXPECT_EQ(json.at("same_bits"), true);
  EXPECT_GT(json.at("split_kernels"), 0);
  for (const Json& bucket : json.at("buckets")) EXPECT_GT(bucket.at("split_kernels"), 0);
}

TEST_F(TrainOnChangingLengths, ResumesInTheMiddle) {
  tree_.write("work/lengths", "2\n5\n3\n5\n2\n");
  const std::string command = kTrained + "--lengths lengths --buckets 2 ";
  const Json whole = json_of(command + "--steps 5");
  json_of(command + "--steps 3 --checkpoint kept");
  const Json rest = json_of(command + "--steps 5 --checkpoint kept");
  EXPECT_EQ(rest.at("first_step"), 3);
  const Json last(whole.at("loss").begin() + 3, whole.at("loss").end());
  EXPECT_EQ(rest.at("loss"), last);
  expect_complaint(kTrained + "--lengths 7-7 --checkpoint kept", "and with the same --lengths");
}

TEST_F(TrainOnChangingLengths, ShowsTheBucketsToAReader) {
  tree_.write("work/lengths", "2\n4\n2\n");
  const Outcome outcome = run(kTrained + "--lengths lengths --steps 3");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("bucket 4, "), std::string::npos) << outcome.err;
  for (const char* part : {"sequence  steps", "made at step", "3 switches between buckets"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << outcome.out;
}

TEST_F(TrainOnChangingLengths, RefusesWhatGivesNoLengths) {
  tree_.write("work/wrong", "5\nmany\n");
  expect_complaint(kTrained + "--lengths 35-10", "'35-10' gives no lengths");
  expect_complaint(kTrained + "--lengths missing", "'missing' gives no lengths");
  expect_complaint(kTrained + "--lengths wrong", "line 2 of wrong is no length");
  expect_complaint(kTrained + "--lengths 1-9 --sequence 4", "leave one of them out");
  expect_complaint(kTrained + "--lengths 1-100000", "a sequence of 100000 does not fit lstm");
  expect_complaint(kTrained + "--lengths 1-9 --buckets 11", "--buckets: '11' does not fit");
  expect_complaint(kTrained + "--buckets 3", "--buckets is of no use without --lengths");
  expect_complaint("train mlp --lengths 1-9", "mlp has no sequences");
  expect_complaint("train lstn --lengths 1-9", "did you mean lstm");
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// `terrace train --data fashion-mnist`: it learns. Needs the files of Debian's package dataset-fashion-mnist;
// where they are missing, the program's own sentence says so and the test fails with it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "support/long_tests.hpp"

namespace terrace {
namespace {

using test::Outcome;

/// Two tests at once that each train with all cores wait for one another at every barrier.
const std::string kThreads = long_tests() ? "" : " --threads 1";

class FashionMnist : public test::Program {
 protected:
  nlohmann::json trained(const std::string& arguments) {
    const Outcome outcome = run("train --data fashion-mnist --json result.json " + arguments + kThreads);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const std::string text = tree_.read("work/result.json");
    return text.empty() ? nlohmann::json() : nlohmann::json::parse(text);
  }
};

TEST_F(FashionMnist, IsLearntByAConvolutionalNetworkInSeconds) {
  const auto json = trained("convnet --batch 64 --evaluate --steps " + std::to_string(few_or_all(60, 150)));
  ASSERT_TRUE(json.contains("test_accuracy"));
  EXPECT_GT(json.at("test_accuracy"), few_or_all(0.7, 0.78));
  EXPECT_LT(json.at("loss").back(), json.at("loss").front());
}

TEST_F(FashionMnist, LoadedWeightsGoOnWhereTheyStood) {
  const std::string steps = std::to_string(few_or_all(50, 150));
  const double fresh = trained("mlp --batch 64 --save weights --steps " + steps).at("loss").front();
  const double loaded = trained("mlp --batch 64 --steps 1 --load weights").at("loss").front();
  EXPECT_LT(loaded, fresh / 2);
}

TEST_F(FashionMnist, PartsOfABatchLearnTheSame) {
  const double whole = trained("mlp --batch 64 --steps 20").at("loss").back();
  const double parts = trained("mlp --batch 64 --steps 20 --micro-batches 4").at("loss").back();
  EXPECT_NEAR(whole, parts, 1e-3);
}

TEST_F(FashionMnist, RefusesABatchOfMoreThanAllPictures) {
  expect_complaint("train mlp --data fashion-mnist --batch 60001", "more than the 60000 pictures there are");
}

TEST_F(FashionMnist, LongTrainingReaches90Percent) {
  if (!long_tests()) GTEST_SKIP() << "takes minutes: set TERRACE_LONG=1";
  const auto json =
      trained("convnet --batch 128 --steps 1400 --learning-rate 0.003 --schedule cosine --evaluate");
  ASSERT_TRUE(json.contains("test_accuracy"));
  EXPECT_GT(json.at("test_accuracy"), 0.90);
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// `terrace train` with Sentinel's test-and-trial, as a user meets it.
#include <gtest/gtest.h>

#include "cli/prepared_cache.hpp"

namespace terrace {
namespace {
using namespace literals;

using test::Outcome;
using Json = nlohmann::json;

const std::string kModel = "train mlp --batch 512 --optimizer sgd --threads 1 ";
const std::string kSentinel = "--fast 80% --planner sentinel+in_place=off ";

class TrainOnTrial : public test::PreparedProgram {
 protected:
  /// Kernels can use it in place, and its links are believed to be so slow that tensors come late.
  std::string slow_memory() const {
    const TierSpec spec = parse_tier_spec("emulated:64MiB,read=20GB/s,write=10GB/s,latency=100ns").value();
    Machine machine = test::made_up_machine(spec);
    machine.tiers[1].name = "emulated";
    machine.tiers[1].addressable = true;
    for (Link& link : machine.links) link.rates = {{1_MiB, {1e6}}};
    CalibrateOptions options;
    options.slow = {spec};
    options.threads = 1;
    keep_machine(machine, machine_cache_file(machine_cache_folder().value(), options)).value();
    return "--slow " + to_string(spec) + " ";
  }
};

TEST_F(TrainOnTrial, SpendsRealStepsOnceWithTheSameBits) {
  const std::string command = kModel + kSentinel + slow_memory() + "--steps 50 --no-adjust ";
  const Outcome first = run(command + "--same-bits --json result.json");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.out.find("\ntrial            "), std::string::npos) << first.out;
  for (const char* part : {"trying whether ", " steps of trial decided for end="})
    EXPECT_NE(first.err.find(part), std::string::npos) << first.err;
  const Json tried = result();
  EXPECT_GT(tried.at("trial_steps"), 0);
  EXPECT_LT(tried.at("trial_steps"), 50);
  EXPECT_EQ(tried.at("trial_remembered"), false);
  EXPECT_GT(tried.at("profiling_step_seconds"), 0) << "accesses are counted once";
  EXPECT_EQ(tried.at("same_bits"), true);
  EXPECT_EQ(tried.at("loss").size(), 50U);
  const Outcome second = run(command + "--json result.json");
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(second.out.find("\ntrial  "), std::string::npos) << second.out;
  const Json remembered = result();
  EXPECT_EQ(remembered.at("trial_steps"), 0);
  EXPECT_EQ(remembered.at("trial_remembered"), true);
  EXPECT_TRUE(remembered.at("profiling_step_seconds").is_null());
  EXPECT_EQ(remembered.at("planner"), tried.at("planner"));
  EXPECT_EQ(remembered.at("loss"), tried.at("loss"));
}

TEST_F(TrainOnTrial, TrainsOnWhereTheDecisionCannotBeKept) {
  std::filesystem::create_directories(tree_.path() / "cache/terrace/profiles.sqlite");
  const Outcome outcome = run(kModel + kSentinel + slow_memory() + "--steps 50 --json result.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("the next run has to try again: "), std::string::npos) << outcome.err;
  EXPECT_GT(result().at("trial_steps"), 0);
}

TEST_F(TrainOnTrial, SpendsNoStepWhereThereIsNothingToTry) {
  const std::string memory = slow_memory();
  for (const std::string& options :
       {kSentinel, kSentinel.substr(0, kSentinel.size() - 1) + "+end=wait " + memory, std::string()}) {
    const Json json = json_of(kModel + options + "--steps 50");
    EXPECT_EQ(json.at("trial_steps"), 0) << options;
    EXPECT_EQ(json.at("trial_remembered"), false) << options;
  }
}

TEST_F(TrainOnTrial, IsNotBegunInARunThatEndsBeforeIt) {
  const Outcome outcome = run(kModel + kSentinel + slow_memory() + "--steps 2 --json result.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("stay as predicted: to try them takes up to"), std::string::npos) << outcome.err;
  EXPECT_EQ(result().at("trial_steps"), 0);
}

/// What an earlier run did is not left to do.
TEST_F(TrainOnTrial, IsNotBegunInAResumedRunThatEndsBeforeIt) {
  json_of(kModel + "--steps 48 --checkpoint kept");
  const std::string command = kModel + kSentinel + slow_memory() + "--checkpoint kept --json result.json ";
  const Outcome late = run(command + "--steps 50");
  ASSERT_EQ(late.code, 0) << late.err;
  EXPECT_NE(late.err.find("steps, and training has 2\n"), std::string::npos) << late.err;
  EXPECT_EQ(result().at("trial_steps"), 0);
  EXPECT_EQ(result().at("first_step"), 48);
  const Outcome early = run(command + "--steps 100");
  ASSERT_EQ(early.code, 0) << early.err;
  EXPECT_GT(result().at("trial_steps"), 0);
  EXPECT_EQ(result().at("first_step"), 50);
}

}  // namespace
}  // namespace terrace

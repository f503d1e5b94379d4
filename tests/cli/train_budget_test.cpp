// SPDX-License-Identifier: Apache-2.0
// `terrace train` within a budget, and with checkpoints, as a user meets it.
#include <gtest/gtest.h>

#include <thread>

#include "cli/prepared_cache.hpp"
#include "cli/running_program.hpp"
#include "terrace/machine_file.hpp"

namespace terrace {
namespace {
using namespace literals;
using namespace std::string_literals;

using test::Outcome;
using test::RunningProgram;
using Json = nlohmann::json;

const std::string kModel = "train mlp --batch 512 --optimizer sgd --threads 1 ";

class TrainInABudget : public test::PreparedProgram {
 protected:
  std::size_t machines_kept() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(machine_cache_folder().value()), {}));
  }
};

TEST_F(TrainInABudget, GivesTheSameBitsAndTellsWhatItCost) {
  const Outcome outcome = run(kModel + "--fast 80% --steps 3 --same-bits --json result.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part :
       {"predicted step", "above the bound of", "best, in", "of dram, 80.0% of the graph's", "the least is",
        "moved in a step", "dram>file", "file>dram", "exposed", "peak resident", "same bits        yes"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " in\n" << outcome.out;
  const Json json = result();
  EXPECT_EQ(json.at("planner"), "best");
  EXPECT_EQ(json.at("machine"), "this");
  EXPECT_EQ(json.at("tiers"), Json::array({"dram", "file"}));
  EXPECT_EQ(json.at("same_bits"), true);
  EXPECT_EQ(json.at("loss").size(), 3U);
  EXPECT_LE(json.at("peak_bytes").at("dram"), json.at("budget_bytes"));
  EXPECT_LT(json.at("budget_bytes"), json.at("graph_peak_bytes"));
  EXPECT_GE(json.at("budget_bytes"), json.at("least_budget_bytes"));
  EXPECT_GT(json.at("peak_bytes").at("file"), 0);
  EXPECT_GT(json.at("moved_bytes").at("dram>file"), 0);
  EXPECT_GT(json.at("moved_bytes").at("file>dram"), 0);
  EXPECT_GE(json.at("predicted_step_seconds"), json.at("bound_seconds"));
  EXPECT_GE(json.at("exposed_seconds"), 0.0);
  EXPECT_GT(json.at("resident_peak_bytes"), json.at("budget_bytes"));
  EXPECT_EQ(machines_kept(), 1U) << "this computer was not measured again";
  EXPECT_FALSE(std::filesystem::exists(tree_.path() / "cache/terrace/spill"));
}

TEST_F(TrainInABudget, EveryPlannerAndTierGivesTheSameLosses) {
  const TierSpec spill = file_tier("spill", 64_MiB);
  prepare(spill);
  const std::string steps = "--steps 2 ";
  const Json unlimited = json_of(kModel + steps);
  EXPECT_TRUE(unlimited.at("same_bits").is_null());
  for (const std::string& options :
       {"--fast 80% --planner lru"s, "--fast 6MiB --planner next-use --slow " + to_string(spill),
        "--fast 200% --planner all-fast"s}) {
    const Json json = json_of(kModel + steps + options);
    EXPECT_EQ(json.at("loss"), unlimited.at("loss")) << options;
  }
}

TEST_F(TrainInABudget, SplitsKernelsThatDoNotFit) {
  const std::string model = "train mlp --batch 8 --optimizer sgd --threads 1 ";
  const Outcome outcome = run(model + "--fast 1MiB --steps 3 --same-bits --save weights --json result.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find(" kernels were split to fit in 1.00 MiB"), std::string::npos) << outcome.out;
  const Json json = result();
  EXPECT_EQ(json.at("same_bits"), true);
  EXPECT_GT(json.at("split_kernels"), 3);
  EXPECT_LE(json.at("least_budget_bytes"), json.at("budget_bytes"));
  const Json whole = json_of(model + "--fast 200% --planner all-fast --steps 3");
  EXPECT_EQ(whole.at("split_kernels"), 0);
  EXPECT_GT(whole.at("least_budget_bytes"), json.at("budget_bytes")) << "it would not fit";
  EXPECT_EQ(whole.at("graph_peak_bytes"), json.at("graph_peak_bytes"));
  EXPECT_EQ(whole.at("parameters"), json.at("parameters"));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(whole.at("loss")[i].get<double>(), json.at("loss")[i].get<double>(), 1e-4);
  }
  EXPECT_EQ(run(model + "--load weights --steps 1").code, 0) << "weights are whole in files";
}

TEST_F(TrainInABudget, ACheckpointOfASplitRunGoesOnInTheSameBudget) {
  const std::string model = "train mlp --batch 8 --optimizer sgd --threads 1 --checkpoint kept ";
  ASSERT_EQ(run(model + "--fast 1MiB --steps 2").code, 0);
  const Json json = json_of(model + "--fast 1MiB --steps 3 --same-bits");
  EXPECT_EQ(json.at("first_step"), 2);
  EXPECT_EQ(json.at("same_bits"), true);
  expect_complaint(model + "--steps 4",
                   "where its kernels were split to fit, the fast memory it was made with");
}

TEST_F(TrainInABudget, RefusesBudgetsBeforeItTakesMemory) {
  expect_complaint(kModel + "--fast 10%", "of fast memory at once and ");
  expect_complaint(kModel + "--fast 10%", "are missing: give at least ");
  for (const char* text : {"0", "0%", "-1%", "1001%", "some"})
    expect_complaint(kModel + "--fast " + text, "is no amount of fast memory: give one such as 2GiB");
  expect_complaint(kModel + "--fast 9999TiB", "of dram on machine this: give less");
  expect_complaint(kModel + "--fast 80% --planner worst", "there is no planner 'worst'");
  for (const char* option : {"--slow file:x:1GiB", "--planner lru", "--same-bits", "--machine v100-pcie3"})
    expect_complaint(kModel + option, "is of no use without --fast");
}

TEST_F(TrainInABudget, RefusesTiersThatCannotHoldIt) {
  const TierSpec small = file_tier("spill", 64_KiB);
  prepare(small);
  expect_complaint(kModel + "--fast 80% --slow " + to_string(small), "full");
  const TierSpec nowhere = file_tier("none/spill", 64_MiB);
  prepare(nowhere);
  expect_complaint(kModel + "--fast 80% --slow " + to_string(nowhere), "none does not exist; create it");
  expect_complaint(kModel + "--fast 80% --slow dsk:1GiB", "'dsk' is no kind of tier");
}

TEST_F(TrainInABudget, RefusesMachinesThatAreNotThisOne) {
  Machine other = test::made_up_machine(file_tier("spill", 64_MiB));
  other.name = "theirs";
  other.compute.name = "another processor";
  write_machine(other, work() / "machine.json");
  expect_complaint(kModel + "--fast 80% --machine machine.json", "machine theirs is not this computer");
  expect_complaint(kModel + "--fast 80% --machine v100-pcie3", "machine v100-pcie3 is not this computer");
  expect_complaint(kModel + "--fast 80% --machine none.json", "cannot read none.json");
}

TEST_F(TrainInABudget, GoesOnFromACheckpointWithTheSameBits) {
  const Json whole = json_of(kModel + "--steps 5");
  const Json first = json_of(kModel + "--steps 3 --fast 80% --checkpoint kept");
  const Json rest = json_of(kModel + "--steps 5 --fast 80% --checkpoint kept --same-bits");
  EXPECT_EQ(rest.at("first_step"), 3);
  EXPECT_EQ(rest.at("same_bits"), true);
  Json losses = first.at("loss");
  for (const Json& loss : rest.at("loss")) losses.push_back(loss);
  EXPECT_EQ(losses, whole.at("loss"));
  const Outcome done = run(kModel + "--steps 5 --checkpoint kept");
  EXPECT_EQ(done.code, 0);
  EXPECT_NE(done.out.find("0 steps, resumed from the checkpoint of step 5"), std::string::npos) << done.out;
}

TEST_F(TrainInABudget, AKilledRunLosesNoCompletedStep) {
  const std::string folder = (work() / "kept").string();
  RunningProgram program({"train", "mlp", "--batch", "512", "--optimizer", "sgd", "--threads", "1", "--fast",
                          "80%", "--steps", "1000000000", "--checkpoint", folder},
                         work() / "out", RunningProgram::Listener::pipe);
  ASSERT_TRUE(program.wait_for("step 1/")) << program.said();
  while (!std::filesystem::exists(work() / "kept/checkpoint.safetensors")) std::this_thread::yield();
  program.send(SIGKILL);
  EXPECT_EQ(program.wait(), -1);
  ASSERT_EQ(run(kModel + "--steps 1 --checkpoint kept --json result.json").code, 0);
  const auto done = result().at("first_step").get<std::int64_t>();
  EXPECT_GE(done, 1);
  EXPECT_EQ(json_of(kModel + "--fast 80% --same-bits --checkpoint kept --steps " + std::to_string(done + 2))
                .at("same_bits"),
            true);
}

TEST_F(TrainInABudget, WritesCheckpointsAsOftenAsItIsToldAndInTheEnd) {
  ASSERT_EQ(run(kModel + "--steps 7 --checkpoint kept --checkpoint-every 5").code, 0);
  EXPECT_EQ(json_of(kModel + "--steps 8 --checkpoint kept --checkpoint-every 5").at("first_step"), 7);
}

TEST_F(TrainInABudget, ADifferenceOfBitsIsNamedAndFails) {
  // Steps that another rate led to are not those of this one.
  ASSERT_EQ(run(kModel + "--steps 2 --learning-rate 0.1 --checkpoint kept").code, 0);
  const Outcome outcome =
      run(kModel + "--steps 3 --checkpoint kept --fast 80% --same-bits --json result.json");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("not the same bits as with all memory: the loss of step 3 is "),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.out.find("same bits        no"), std::string::npos) << outcome.out;
  EXPECT_EQ(result().at("same_bits"), false);
}

TEST_F(TrainInABudget, RefusesCheckpointsOfOtherRuns) {
  ASSERT_EQ(run(kModel + "--steps 1 --checkpoint kept").code, 0);
  tree_.write("work/damaged/checkpoint.safetensors", "no checkpoint");
  tree_.write("work/file", "");
  expect_complaint(kModel + "--checkpoint kept --seed 9", "was trained with seed 0 and not 9: give --seed 0");
  expect_complaint("train mlp --batch 4 --checkpoint kept", "is a checkpoint of another graph than mlp");
  expect_complaint(kModel + "--checkpoint damaged", "damaged/checkpoint.safetensors");
  expect_complaint(kModel + "--checkpoint file/folder", "cannot make the folder file/folder for checkpoints");
  expect_complaint(kModel + "--checkpoint kept --checkpoint-every 0", "--checkpoint-every: '0' does not fit");
}

}  // namespace
}  // namespace terrace

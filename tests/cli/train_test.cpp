// SPDX-License-Identifier: Apache-2.0
// `terrace train` as a user meets it.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "cli/running_program.hpp"
#include "support/long_tests.hpp"

namespace terrace {
namespace {

using test::Outcome;
using test::RunningProgram;
using Json = nlohmann::json;

class TrainCommand : public test::Program {
 protected:
  Json result(const std::string& name = "result.json") const {
    return Json::parse(tree_.read("work/" + name));
  }
  std::string path(const std::string& name) const { return (work() / name).string(); }
  /// Trains and returns its JSON.
  Json trained(const std::string& arguments) {
    const Outcome outcome = run("train " + arguments + " --json result.json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return result();
  }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST_F(TrainCommand, TellsItsStepsInFewLinesAndSumsUp) {
  const Outcome outcome = run("train mlp --batch 4 --steps 100");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto lines = lines_of(outcome.err);
  ASSERT_LE(lines.size(), 20U);
  ASSERT_GE(lines.size(), 10U);
  EXPECT_TRUE(lines.front().starts_with("step 1/100, loss ")) << lines.front();
  EXPECT_TRUE(lines.back().starts_with("step 100/100, loss ")) << lines.back();
  EXPECT_EQ(outcome.err.find('\r'), std::string::npos);
  for (const char* part : {"mlp, batch 4", "100 steps", "median step", "samples/s", "final loss",
                           "graph peak", "arena", "peak resident"}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part;
  }
}

TEST_F(TrainCommand, TellsEveryStepOfAShortRun) {
  EXPECT_EQ(lines_of(run("train mlp --batch 4 --steps 7").err).size(), 7U);
  EXPECT_EQ(lines_of(run("train mlp --batch 4 --steps 1").err).size(), 1U);
}

TEST_F(TrainCommand, OverwritesOneLineOnATerminalAndLeavesNone) {
  RunningProgram program({"train", "mlp", "--batch", "4", "--steps", "50"}, path("out"),
                         RunningProgram::Listener::terminal);
  EXPECT_EQ(program.wait(), 0);
  EXPECT_NE(program.said().find("\rstep 1/50, loss "), std::string::npos) << program.said();
  EXPECT_NE(program.said().find("of memory"), std::string::npos) << "says what it is setting up";
  EXPECT_EQ(program.said().find('\n'), std::string::npos);
  EXPECT_TRUE(program.said().ends_with(" \r"));
}

TEST_F(TrainCommand, WritesJsonWithStableKeys) {
  const Json json = trained("resnet32 --batch 4 --steps 3 --seed 7 --threads 1");
  EXPECT_EQ(json.at("model"), "resnet32");
  EXPECT_EQ(json.at("batch"), 4);
  EXPECT_EQ(json.at("planner"), "unlimited");
  EXPECT_EQ(json.at("tiers"), Json::array({"dram"}));
  EXPECT_EQ(json.at("seed"), 7);
  EXPECT_EQ(json.at("threads"), 1);
  EXPECT_EQ(json.at("moved_bytes"), Json::object());
  EXPECT_EQ(json.at("exposed_seconds"), 0);
  for (const char* key : {"budget_bytes", "predicted_step_seconds", "bound_seconds", "same_bits"})
    EXPECT_TRUE(json.at(key).is_null()) << key;
  EXPECT_GT(json.at("parameters"), 400'000);
  EXPECT_GE(json.at("peak_bytes").at("dram"), json.at("graph_peak_bytes"));
  EXPECT_GT(json.at("graph_peak_bytes"), 4 * json.at("parameters").get<std::uint64_t>());
  EXPECT_GT(json.at("resident_peak_bytes"), json.at("peak_bytes").at("dram"));
  EXPECT_GT(json.at("samples_per_second"), 0.0);
  ASSERT_EQ(json.at("loss").size(), 3U);
  auto seconds = json.at("step_seconds").get<std::vector<double>>();
  ASSERT_EQ(seconds.size(), 3U);
  std::sort(seconds.begin(), seconds.end());
  EXPECT_EQ(json.at("median_step_seconds"), seconds[1]);
  EXPECT_FALSE(json.contains("test_accuracy"));
}

TEST_F(TrainCommand, TheSeedDecidesEveryLoss) {
  const std::string threads = long_tests() ? "" : "--threads 1 ";
  const std::string arguments = "resnet32 --batch 4 --steps 4 " + threads + "--seed ";
  const Json first = trained(arguments + "1"), again = trained(arguments + "1"),
             other = trained(arguments + "2");
  EXPECT_EQ(first.at("loss"), again.at("loss"));
  EXPECT_NE(first.at("loss"), other.at("loss"));
}

TEST_F(TrainCommand, OptionsOfTheOptimizerReachIt) {
  const std::string arguments = "mlp --batch 4 --steps 4 ";
  const Json adam = trained(arguments), sgd = trained(arguments + "--optimizer sgd"),
             slow = trained(arguments + "--learning-rate 0.0001"),
             cosine = trained(arguments + "--schedule cosine");
  EXPECT_EQ(adam.at("loss"), trained(arguments + "--optimizer adam --learning-rate 0.001").at("loss"));
  for (const Json& other : {sgd, slow}) {
    EXPECT_EQ(adam.at("loss")[0], other.at("loss")[0]);
    EXPECT_NE(adam.at("loss")[1], other.at("loss")[1]);
  }
  EXPECT_EQ(adam.at("loss")[1], cosine.at("loss")[1]) << "the first step has the full rate";
  EXPECT_NE(adam.at("loss")[2], cosine.at("loss")[2]);
}

TEST_F(TrainCommand, TheLossOfPartsIsTheirMean) {
  const double of_one = trained("mlp --batch 8 --steps 1").at("loss")[0];
  const double of_four = trained("mlp --batch 8 --steps 1 --micro-batches 4").at("loss")[0];
  EXPECT_NEAR(of_one, of_four, 0.5) << "about ln 10 either way";
}

TEST_F(TrainCommand, TrainsSequencesOfTheLengthAskedFor) {
  const Json json = trained("lstm --batch 2 --sequence 3 --steps 1");
  EXPECT_NEAR(json.at("loss")[0].get<double>(), std::log(10'000), 1);
}

TEST_F(TrainCommand, AnInterruptEndsTheRunAfterItsStepWithAllItsResults) {
  for (const int signal : {SIGINT, SIGTERM}) {
    RunningProgram program({"train", "mlp", "--batch", "4", "--steps", "1000000000", "--save",
                            path("weights"), "--json", path("result.json")},
                           path("out"), RunningProgram::Listener::pipe);
    ASSERT_TRUE(program.wait_for("step 1/")) << program.said();
    program.send(signal);
    EXPECT_EQ(program.wait(), 130);
    const std::size_t steps = result().at("loss").size();
    EXPECT_GE(steps, 1U);
    EXPECT_EQ(result().at("step_seconds").size(), steps);
    EXPECT_NE(tree_.read("work/out").find("interrupted after step " + std::to_string(steps) + " of "),
              std::string::npos);
    EXPECT_EQ(run("train mlp --steps 1 --batch 4 --load weights").code, 0);
    std::filesystem::remove(path("weights"));
  }
}

TEST_F(TrainCommand, LoadedWeightsAreThoseThatWereSaved) {
  // A rate that changes no weight: what is loaded is what was saved at the start.
  const std::string still = "mlp --batch 4 --steps 1 --learning-rate 1e-30 --optimizer sgd ";
  const Json saved = trained(still + "--seed 1 --save weights");
  const Json own = trained(still + "--seed 2"),
             loaded = trained(still + "--seed 2 --load weights --save again");
  EXPECT_NE(own.at("loss"), loaded.at("loss")) << "the same data, other weights";
  EXPECT_EQ(tree_.read("work/weights").substr(1000), tree_.read("work/again").substr(1000));
  EXPECT_EQ(trained(still + "--seed 1 --load again").at("loss"), saved.at("loss"));
}

TEST_F(TrainCommand, StopsWhereTheLossIsNoNumberAndKeepsWhatWasThere) {
  tree_.write("work/weights", "of an earlier run");
  const Outcome outcome =
      run("train mlp --batch 4 --steps 50 --learning-rate 1e30 --save weights --json result.json");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("at step 2: lower --learning-rate, which was 1e+30; the weights were not saved"),
            std::string::npos)
      << outcome.err;
  EXPECT_EQ(result().at("loss").size(), 2U);
  EXPECT_TRUE(result().at("loss")[1].is_null());
  EXPECT_EQ(tree_.read("work/weights"), "of an earlier run");
}

TEST_F(TrainCommand, RefusesModelsAndSizesThatMakeNoTraining) {
  expect_complaint("train", "model is required");
  expect_complaint("train resnet51", "there is no model 'resnet51': did you mean resnet50");
  for (const char* batch : {"0", "-3", "many", "1.5", "99999999999999999999"}) {
    expect_complaint("train mlp --batch " + std::string(batch),
                     "--batch: '" + std::string(batch) + "' does not fit: give a whole number of at least 1");
  }
  expect_complaint("train mlp --batch 2000000", "a batch of 2000000 for mlp makes no graph: choose 1 to");
  expect_complaint("train resnet50 --batch 1000000", "of memory (dram ");
  expect_complaint("train mlp --steps 0", "--steps: '0' does not fit");
  expect_complaint("train mlp --threads 0", "--threads: '0' does not fit: give a whole number from 1 to ");
  expect_complaint("train mlp --seed -1", "--seed: '-1' does not fit");
  expect_complaint("train mlp --learning-rate 0",
                   "--learning-rate: '0' does not fit: give a number above zero");
  expect_complaint("train mlp --learning-rate nan", "--learning-rate: 'nan' does not fit");
  expect_complaint("train mlp --optimizer lion", "there is no 'lion': choose sgd or adam");
  expect_complaint("train mlp --schedule linear", "there is no 'linear': choose constant or cosine");
  expect_complaint("train mlp --batch 10 --micro-batches 3", "cannot be split into 3 equal parts");
  expect_complaint("train mlp --micro-batches 0", "--micro-batches: '0' does not fit");
  expect_complaint("train lstm --sequence 0", "--sequence: '0' does not fit");
  expect_complaint("train mlp --sequence 4", "mlp has no sequence");
}

TEST_F(TrainCommand, RefusesFilesThatAreNotThereOrNotItsOwn) {
  tree_.write("work/text", "not weights");
  ASSERT_EQ(run("train mlp --batch 4 --steps 1 --save mlp.weights").code, 0);
  expect_complaint("train mlp --load none", "cannot read none");
  expect_complaint("train mlp --load text", "text");
  expect_complaint("train convnet --batch 4 --load mlp.weights", "it is not a file of weights of convnet");
  expect_complaint("train mlp --save none/weights", "the folder none does not exist; create it");
  expect_complaint("train mlp --save .", "not a regular file");
  expect_complaint("train mlp --json none/result.json", "cannot write none/result.json");
}

TEST_F(TrainCommand, RefusesDataThatAreNotThereOrDoNotFit) {
  tree_.write("work/damaged/train-images-idx3-ubyte.gz", "nothing");
  expect_complaint("train mlp --data cifar", "there is no 'cifar': choose synthetic or fashion-mnist");
  expect_complaint("train resnet32 --data fashion-mnist", "train mlp or convnet, or leave out --data");
  expect_complaint(
      "train mlp --data fashion-mnist --data-folder none",
      "there is no none/train-images-idx3-ubyte.gz: run `apt-get install dataset-fashion-mnist`");
  expect_complaint("train mlp --data fashion-mnist --data-folder damaged",
                   "damaged/train-images-idx3-ubyte.gz");
  expect_complaint("train mlp --evaluate", "add --data fashion-mnist");
  expect_complaint("train mlp --data-folder x", "--data-folder is of no use without --data fashion-mnist");
}

}  // namespace
}  // namespace terrace

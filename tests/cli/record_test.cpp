// SPDX-License-Identifier: Apache-2.0
// Records on the command line: what `plan -o` writes is all that other commands need.
#include "terrace/record.hpp"

#include <gtest/gtest.h>

#include "cli/prepared_cache.hpp"
#include "terrace/machine_file.hpp"

namespace terrace {
namespace {

using test::Outcome;
using Json = nlohmann::json;

const std::string kRecorded = "mlp --batch 512 --optimizer sgd --machine v100-pcie3 --fast 70% ";

class RecordCommands : public test::PreparedProgram {
 protected:
  void make_record(const std::string& planner = "prefetch") {
    const Outcome outcome = run("plan " + kRecorded + "--planner " + planner + " -o r.json");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
};

TEST_F(RecordCommands, HoldAllThatVerifyNeeds) {
  make_record();
  const Outcome outcome = run("verify r.json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("safe: all ")) << outcome.out;
  EXPECT_NE(outcome.out.find("by prefetch for mlp on v100-pcie3"), std::string::npos) << outcome.out;
  const Json json = json_of("verify r.json");
  EXPECT_EQ(json.at("safe"), true);
  EXPECT_EQ(json.at("batch"), 512);
}

TEST_F(RecordCommands, AreSimulatedAsTheyWerePlanned) {
  make_record();
  const Json json = json_of("simulate r.json");
  EXPECT_EQ(json.at("predicted_step_seconds"), json.at("planned_step_seconds"));
  EXPECT_EQ(json.at("times"), "estimated, as recorded");
  EXPECT_FALSE(json.contains("planned_for"));
}

TEST_F(RecordCommands, GoToOtherMachinesAndSaySo) {
  make_record();
  const Json json = json_of("simulate r.json --machine h200-pcie5");
  EXPECT_EQ(json.at("machine"), "h200-pcie5");
  EXPECT_EQ(json.at("planned_for"), "v100-pcie3");
  EXPECT_LT(json.at("predicted_step_seconds"), json.at("planned_step_seconds"));
  const std::string out = run("simulate r.json --machine h200-pcie5").out;
  EXPECT_NE(out.find("estimated for h200-pcie5: the record's are of v100-pcie3"), std::string::npos) << out;
  EXPECT_NE(out.find("device as device, host as host"), std::string::npos) << out;
  EXPECT_EQ(json_of("verify r.json --machine h200-pcie5").at("safe"), true);
}

TEST_F(RecordCommands, AreComparedWithOtherPlanners) {
  make_record();
  const Json rows = json_of("compare r.json --planners prefetch,lru").at("rows");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].at("planner"), "prefetch (recorded)");
  EXPECT_EQ(rows[0].at("predicted_step_seconds"), rows[1].at("predicted_step_seconds"));
  EXPECT_EQ(rows[0].at("budget_bytes"), rows[1].at("budget_bytes"));
  EXPECT_GT(rows[2].at("predicted_step_seconds"), rows[1].at("predicted_step_seconds"));
  const Json others = json_of("compare r.json --planners lru --fast 60%,80% --machine h200-pcie5").at("rows");
  ASSERT_EQ(others.size(), 2U);
  EXPECT_EQ(others[0].at("machine"), "h200-pcie5");
}

TEST_F(RecordCommands, OfSplitKernelsNeedNoBudget) {
  const std::string model = "mlp --batch 8 --optimizer sgd --machine v100-pcie3 --planner lru ";
  EXPECT_EQ(run("plan " + model + "--fast 1MiB -o r.json").code, 0);
  EXPECT_GT(read_record(work() / "r.json")->split_kernels, 3U);
  EXPECT_EQ(run("verify r.json").code, 0);
  EXPECT_EQ(run("simulate r.json").code, 0);
}

TEST_F(RecordCommands, KeepMeasuredTimesOfThisComputer) {
  write_machine(test::made_up_machine(file_tier("spill", Bytes{1U << 30U})), work() / "machine.json");
  ASSERT_EQ(run("plan " + model_to_measure() + " --machine machine.json --planner lru -o r.json").code, 0);
  EXPECT_EQ(json_of("simulate r.json").at("times"), "measured, as recorded");
}

TEST_F(RecordCommands, ThatWereTamperedWithAreRefused) {
  make_record("lru");
  Json json = result("r.json");
  json["plan"]["prediction"]["step"] = 1e-9;
  tree_.write("work/r.json", json.dump());
  for (const char* command : {"verify r.json", "simulate r.json", "compare r.json"})
    expect_complaint(command, "the plan was changed after the record was written (fingerprint ");
}

TEST_F(RecordCommands, TakeNoOptionsOfPlans) {
  make_record("lru");
  expect_complaint("verify r.json --model mlp",
                   "r.json is a record, which holds its graph and budget: leave out --model");
  expect_complaint("simulate r.json --fast 20%", "leave out --fast");
  expect_complaint("compare r.json --real", "--real needs a model");
  expect_complaint("simulate r.json --machine numa", "there is no machine 'numa'");
}

TEST_F(RecordCommands, AProgramOfOnesOwnStandsBesideOurs) {
  const std::string planner = "exec:" TERRACE_TESTS "/../examples/lru_planner.py";
  const Json rows = json_of("compare " + kRecorded + "--planners 'lru," + planner + "'").at("rows");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].at("planner"), planner);
  EXPECT_EQ(rows[1].at("verified"), true) << rows[1];
  EXPECT_NEAR(rows[1].at("predicted_step_seconds").get<double>(),
              rows[0].at("predicted_step_seconds").get<double>(), 1e-12);
}

TEST_F(RecordCommands, AProgramThatLiesIsRefusedWithTheViolation) {
  tree_.write("work/liar.py", "import json, sys\njson.load(sys.stdin)\nprint('{\"instructions\": []}')\n");
  expect_complaint("plan " + kRecorded + "--planner 'exec:python3 liar.py'", "is refused: at the ");
  const Json rows = json_of("compare " + kRecorded + "--planners 'exec:python3 liar.py'").at("rows");
  EXPECT_EQ(rows[0].at("verified"), false);
  EXPECT_NE(rows[0].at("reason").get<std::string>().find("is refused"), std::string::npos);
}

// The same plan is safe where the kernel reads a weight in place of a token.
TEST_F(RecordCommands, AProgramThatRecomputesAKernelWithATokenIsRefused) {
  const auto graph = [](const std::string& kind) {
    return R"({"format": "terrace-graph", "version": 1, "name": "draws", "tensors": [
      {"name": "x", "bytes": 4096, "kind": "input"}, {"name": "y", "bytes": 4096},
      {"name": "generator", "bytes": 64, "kind": ")" +
           kind + R"("}], "kernels": [{"name": "draw", "operation": "acme.draw",
      "inputs": ["x", "generator"], "outputs": ["y"], "flops": 10}], "results": ["y"]})";
  };
  tree_.write("work/token.json", graph("token"));
  tree_.write("work/weight.json", graph("weight"));
  tree_.write("work/twice.py", R"(import json, sys
json.load(sys.stdin)
draw = [["alloc", 1, 0], ["run", 0, 0, [0, 0, 0]]]
print(json.dumps({"start": [[0, 0], [2, 0]], "instructions": draw + [["free", 1, 0]] + draw}))
)");
  const std::string rest = " --machine v100-pcie3 --planner 'exec:python3 twice.py'";
  const Outcome weight = run("plan weight.json" + rest);
  EXPECT_EQ(weight.code, 0) << weight.err;
  expect_complaint("plan token.json" + rest, "kernel draw runs again, and generator stands for state");
}

TEST_F(RecordCommands, AProgramIsStoppedWhenItsTimeIsOver) {
  expect_complaint("plan " + kRecorded + "--planner 'exec:sleep 30' --planner-seconds 0.2",
                   "planner exec:sleep 30 was stopped before it had a plan");
  expect_complaint("plan " + kRecorded + "--planner exec:", "exec: is followed by a program");
  expect_complaint("advise mlp --planner exec:./mine", "advise plans dozens of times");
}

TEST_F(RecordCommands, PlannersAreListedWithTheirOptions) {
  const std::string out = run("planners").out;
  for (const char* part : {"best ", "sentinel ", "+interval=", "exec:PROGRAM", "lru "})
    EXPECT_NE(out.find(part), std::string::npos) << part;
  EXPECT_EQ(json_of("planners").at("planners").at(0).at("planner"), "best");
}

}  // namespace
}  // namespace terrace

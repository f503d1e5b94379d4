// SPDX-License-Identifier: Apache-2.0
// `terrace plan`, `verify` and `simulate` as a user meets them.
#include <gtest/gtest.h>

#include "cli/prepared_cache.hpp"
#include "cli/running_program.hpp"
#include "terrace/machine_file.hpp"
#include "terrace/plan_file.hpp"
#include "terrace/record.hpp"

namespace terrace {
namespace {

using test::Outcome;
using Json = nlohmann::json;

// On a machine of the papers nothing is measured.
const std::string kPlanned = "mlp --batch 512 --optimizer sgd --machine v100-pcie3 ";
const std::string kSame = "--model " + kPlanned;

class PlanCommand : public test::PreparedProgram {
 protected:
  void make_plan_file() {
    const Outcome outcome = run("plan " + kPlanned + "--fast 70% -o plan.json");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    leave_the_plan_alone();
  }
  /// Files of plans without what they are for: what programs wrote before there were records.
  void leave_the_plan_alone() const {
    write_plan(read_record(work() / "plan.json").value().plan.value(), work() / "plan.json");
  }
};

TEST_F(PlanCommand, TellsTimesTrafficAndTheLeastBudget) {
  const Outcome outcome = run("plan " + kPlanned + "--fast 70%");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* part :
       {"mlp with batch 512 on v100-pcie3, by best", "verified", "estimated from the machine", "graph peak",
        "of device; the least is", "above the bound of", "fast only", "host>device", "exposed", "planned in"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " in\n" << outcome.out;
}

TEST_F(PlanCommand, WritesJsonWithStableKeys) {
  const Json json = json_of("plan " + kPlanned + "--fast 70% --planner next-use");
  EXPECT_EQ(json.at("model"), "mlp");
  EXPECT_EQ(json.at("batch"), 512);
  EXPECT_EQ(json.at("machine"), "v100-pcie3");
  EXPECT_EQ(json.at("planner"), "next-use");
  EXPECT_EQ(json.at("verified"), true);
  EXPECT_TRUE(json.at("slow_only_seconds").is_null()) << "kernels cannot use the host's memory in place";
  EXPECT_NEAR(json.at("budget_bytes").get<double>(), 0.7 * json.at("graph_peak_bytes").get<double>(), 1);
  EXPECT_LE(json.at("planned_bytes").at("device"), json.at("budget_bytes"));
  EXPECT_LE(json.at("least_budget_bytes"), json.at("budget_bytes"));
  EXPECT_GE(json.at("predicted_step_seconds"), json.at("bound_seconds"));
  EXPECT_GE(json.at("bound_seconds").get<double>(), json.at("fast_only_seconds").get<double>() * 0.999);
  EXPECT_NEAR(json.at("gap").get<double>(),
              json.at("predicted_step_seconds").get<double>() / json.at("bound_seconds").get<double>() - 1,
              1e-9);
  EXPECT_GT(json.at("plan_seconds"), 0.0);
  EXPECT_GT(json.at("exposed_seconds"), 0.0);
  EXPECT_GT(json.at("moved_bytes").at("host>device"), 0);
  EXPECT_GT(json.at("kernels"), 5);
  EXPECT_GT(json.at("tensors"), json.at("kernels"));
}

TEST_F(PlanCommand, TellsTheTimeInSlowMemoryWhereKernelsCanUseIt) {
  const Json json = json_of("plan mlp --machine optane-autotm");
  EXPECT_GT(json.at("slow_only_seconds"), json.at("fast_only_seconds"));
  EXPECT_EQ(json.at("moved_bytes"), Json::object()) << "all of the machine's memory is given";
}

TEST_F(PlanCommand, SaysWhatAProgramProvedOfItsPlan) {
  const std::string asked = "plan " + kPlanned + "--fast 70% --planner autotm-sync ";
  const Json json = json_of(asked + "--solver fast");
  EXPECT_EQ(json.at("planner"), "autotm-sync+solver=fast");
  const std::string remark = json.at("remark");
  EXPECT_TRUE(remark.starts_with("its program's ")) << remark;
  EXPECT_TRUE(remark.ends_with("1% asked")) << remark;
  EXPECT_FALSE(json_of("plan " + kPlanned + "--fast 70% --planner lru").contains("remark"));
  const std::string best = json_of("plan " + kPlanned + "--fast 70%").at("remark");
  EXPECT_TRUE(best.starts_with("the fastest of ")) << best;
}

TEST_F(PlanCommand, AnInterruptKeepsTheBestPlanOfAPlannerThatLearns) {
  test::RunningProgram program(
      {"plan", "mlp", "--batch", "512", "--optimizer", "sgd", "--machine", "optane-deeptm", "--fast", "40%",
       "--planner", "deeptm+episodes=1000000000", "-o", (work() / "plan.json").string()},
      work() / "out", test::RunningProgram::Listener::terminal);
  ASSERT_TRUE(program.wait_for("best step")) << program.said();
  program.send(SIGINT);
  EXPECT_EQ(program.wait(), 130);
  EXPECT_NE(tree_.read("work/out").find("stopped before it ended"), std::string::npos);
  EXPECT_EQ(run("verify plan.json").code, 0);
}

TEST_F(PlanCommand, WritesThePlanAndPrintsIt) {
  make_plan_file();
  const Plan plan = read_plan(work() / "plan.json").value();
  EXPECT_EQ(plan.planner, "best");
  const Outcome outcome = run("plan " + kPlanned + "--fast 70% --print");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(outcome.out.starts_with("plan by best")) << outcome.out;
  EXPECT_NE(outcome.out.find(" run fc1:linear ("), std::string::npos) << outcome.out;
}

TEST_F(PlanCommand, TakesWhatItWorksOnFromFilesOfMachines) {
  Machine machine = machine_preset("v100-pcie3").value();
  machine.name = "mine";
  write_machine(machine, work() / "machine.json");
  const Json json = json_of("plan mlp --machine machine.json");
  EXPECT_EQ(json.at("machine"), "mine");
}

TEST_F(PlanCommand, AMachineFileOfThisComputerHasItsKernelsMeasured) {
  write_machine(test::made_up_machine(file_tier("spill", Bytes{1U << 30U})), work() / "machine.json");
  const std::string model = model_to_measure();
  const Outcome outcome = run("plan " + model + " --machine machine.json -o plan.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("of kernels measured on this computer"), std::string::npos) << outcome.out;
  leave_the_plan_alone();
  EXPECT_EQ(run("verify plan.json --model " + model + " --machine machine.json").code, 0);
}

TEST_F(PlanCommand, RefusesWhatMakesNoPlan) {
  expect_complaint("plan", "model is required");
  expect_complaint("plan resnet51", "did you mean resnet50");
  expect_complaint("plan mlp --machine v100-pcie", "there is no machine 'v100-pcie'");
  expect_complaint("plan mlp --machine none.json", "cannot read none.json");
  expect_complaint("plan " + kPlanned + "--slow file:x:1GiB", "the tiers of machine v100-pcie3 are its own");
  expect_complaint("plan " + kPlanned + "--planner prefech", "there is no planner 'prefech': take prefetch");
  expect_complaint("plan " + kPlanned + "--planner best --solver fast",
                   "--solver: is for planners whose names begin with autotm-");
  expect_complaint("plan " + kPlanned + "--planner autotm-sync --solver gurobi", "--solver: gurobi not in {");
  expect_complaint("plan " + kPlanned + "--fast 0%", "--fast: '0%' is no amount of fast memory");
  expect_complaint("plan " + kPlanned + "--fast 17TiB",
                   "more than the 14.90 GiB of device on machine v100-pcie3");
  expect_complaint("plan " + kPlanned + "--fast 100KiB", "of fast memory at once and 100.00 KiB is given");
  expect_complaint("plan " + kPlanned + "--fast 70% --planner all-fast", "take another planner");
  expect_complaint("plan " + kPlanned + "-o none/plan.json", "the folder none does not exist");
}

TEST_F(PlanCommand, VerifyAcceptsASafePlan) {
  make_plan_file();
  const Outcome outcome = run("verify plan.json " + kSame);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("safe: all ")) << outcome.out;
  const Json json = json_of("verify plan.json " + kSame);
  EXPECT_EQ(json.at("safe"), true);
  EXPECT_EQ(json.at("violations"), Json::array());
}

TEST_F(PlanCommand, APlanOfSplitKernelsIsReplayedWithItsBudget) {
  const std::string model = "mlp --batch 8 --optimizer sgd --machine v100-pcie3 ";
  const Json json = json_of("plan " + model + "--fast 1MiB -o plan.json");
  EXPECT_GT(json.at("split_kernels"), 3);
  leave_the_plan_alone();
  const Outcome outcome = run("plan " + model + "--fast 1MiB");
  EXPECT_NE(outcome.out.find(" kernels were split to fit in 1.00 MiB"), std::string::npos) << outcome.out;
  EXPECT_EQ(json_of("verify plan.json --model " + model + "--fast 1MiB").at("safe"), true);
  EXPECT_EQ(run("simulate plan.json --model " + model + "--fast 1MiB").code, 0);
  expect_complaint("verify plan.json --model " + model, "and --fast where its kernels were split to fit");
  const Json rows = json_of("compare " + model + "--fast 1MiB,90% --planners prefetch").at("rows");
  EXPECT_EQ(rows[0].at("split_kernels"), json.at("split_kernels"));
  EXPECT_EQ(rows[1].at("split_kernels"), 0);
  EXPECT_GT(rows[0].at("kernels"), rows[1].at("kernels"));
}

TEST_F(PlanCommand, VerifyListsWhatIsWrongAndFails) {
  make_plan_file();
  Plan plan = read_plan(work() / "plan.json").value();
  std::erase_if(plan.instructions, [](const Instruction& one) { return std::holds_alternative<Wait>(one); });
  write_plan(plan, work() / "plan.json");
  const Outcome outcome = run("verify plan.json " + kSame);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(outcome.out.starts_with("at instruction ")) << outcome.out;
  EXPECT_NE(outcome.err.find("terrace: plan.json is not safe: "), std::string::npos) << outcome.err;
  EXPECT_EQ(run("verify plan.json " + kSame + "--json result.json").code, 1);
  EXPECT_EQ(result().at("safe"), false);
  EXPECT_FALSE(result().at("violations")[0].at("reason").get<std::string>().empty());
  expect_complaint("simulate plan.json " + kSame,
                   "plan.json is not safe on machine v100-pcie3: at instruction");
}

TEST_F(PlanCommand, RefusesPlansOfOthers) {
  make_plan_file();
  tree_.write("work/text", "no plan");
  for (const std::string command : {"verify ", "simulate "}) {
    expect_complaint(command + "none.json " + kSame, "cannot read none.json");
    expect_complaint(command + "text " + kSame, "text");
    expect_complaint(command + "plan.json", "--model is required");
    expect_complaint(command + "plan.json --model mlp --batch 64 --machine v100-pcie3",
                     "the plan was made for another graph");
  }
  expect_complaint("verify plan.json --model mlp --batch 512 --optimizer sgd --machine rtx2080ti",
                   "plan.json was made for another machine");
}

TEST_F(PlanCommand, SimulateRepeatsThePredictionAndGoesToOtherMachines) {
  make_plan_file();
  const Json own = json_of("simulate plan.json " + kSame);
  EXPECT_NEAR(own.at("predicted_step_seconds").get<double>(), own.at("planned_step_seconds").get<double>(),
              1e-9);
  EXPECT_GT(own.at("moved_bytes").at("host>device"), 0);
  EXPECT_GT(own.at("peak_bytes").at("device"), 0);
  EXPECT_GE(own.at("predicted_step_seconds"), own.at("bound_seconds"));
  const Json other =
      json_of("simulate plan.json --model mlp --batch 512 --optimizer sgd --machine h200-pcie5");
  EXPECT_LT(other.at("predicted_step_seconds"), own.at("predicted_step_seconds"));
  const Outcome outcome = run("simulate plan.json " + kSame);
  for (const char* part : {"plan.json, by best for mlp, on v100-pcie3", "above the bound", "moves", "peak"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " in\n" << outcome.out;
}

}  // namespace
}  // namespace terrace

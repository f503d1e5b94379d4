// SPDX-License-Identifier: Apache-2.0
// `terrace compare` as a user meets it.
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/prepared_cache.hpp"
#include "terrace/planner.hpp"

namespace terrace {
namespace {

using test::Outcome;
using Json = nlohmann::json;

class CompareCommand : public test::PreparedProgram {};

TEST_F(CompareCommand, PutsEveryPlannerInOneTableWithTheReasonsOfThoseThatFail) {
  const Outcome outcome = run("compare mlp --batch 512 --optimizer sgd --machine v100-pcie3 --fast 1%,70%");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'),
            static_cast<std::ptrdiff_t>(3 + 2 * planners().size()))
      << outcome.out;
  for (const PlannerInfo& planner : planners())
    EXPECT_NE(outcome.out.find("  " + std::string(planner.name) + " "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("are missing"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("take another planner"), std::string::npos) << outcome.out;
}

TEST_F(CompareCommand, WritesARowForEachWithTheKeysOfPlan) {
  const std::string model = "mlp --batch 512 --optimizer sgd --machine v100-pcie3 ";
  const Json plan = json_of("plan " + model + "--fast 70% --planner lru");
  const Json rows = json_of("compare " + model + "--fast 70%,1% --planners lru,prefetch").at("rows");
  ASSERT_EQ(rows.size(), 4U);
  for (const auto& [key, value] : plan.items()) {
    if (key == "plan_seconds") continue;
    EXPECT_EQ(rows[0].at(key), value) << key;
  }
  EXPECT_EQ(rows[1].at("planner"), "prefetch");
  EXPECT_EQ(rows[1].at("verified"), true);
  EXPECT_EQ(rows[2].at("verified"), false);
  EXPECT_TRUE(rows[2].at("predicted_step_seconds").is_null());
  EXPECT_FALSE(rows[2].at("reason").get<std::string>().empty());
}

TEST_F(CompareCommand, CarriesPlansOutWhereThatIsAskedFor) {
  const Json rows =
      json_of("compare mlp --batch 512 --optimizer sgd --threads 1 --fast 80% --real").at("rows");
  ASSERT_EQ(rows.size(), planners().size());
  for (const Json& row : rows) {
    if (row.at("verified") == false) continue;
    EXPECT_EQ(row.at("step_seconds").size(), 3U) << row;
    EXPECT_GT(row.at("median_step_seconds"), 0.0);
  }
  EXPECT_EQ(rows[0].at("verified"), true) << rows[0];
}

TEST_F(CompareCommand, RefusesWhatCannotBeCompared) {
  expect_complaint("compare mlp --machine v100-pcie3 --real", "--real needs this computer");
  expect_complaint("compare mlp --planners lru,xyz", "there is no planner 'xyz': take ");
  expect_complaint("compare mlp --fast 20%,much", "'much' is no amount of fast memory");
  expect_complaint("compare mpl", "there is no model 'mpl'");
  expect_complaint("compare mlp --json none/result.json", "cannot write none/result.json");
}

}  // namespace
}  // namespace terrace

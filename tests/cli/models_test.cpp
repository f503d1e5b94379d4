// SPDX-License-Identifier: Apache-2.0
// `terrace models` as a user meets it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/program.hpp"
#include "terrace/models.hpp"

namespace terrace {
namespace {

using test::Outcome;
class ModelsCommand : public test::Program {};

std::vector<std::string> rows_of_table(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST_F(ModelsCommand, ListsEveryModelUnderATitle) {
  const Outcome outcome = run("models");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto lines = rows_of_table(outcome.out);
  ASSERT_EQ(lines.size(), models().size() + 1);
  EXPECT_TRUE(lines[0].starts_with("model ")) << lines[0];
  for (std::size_t i = 0; i < models().size(); ++i) {
    EXPECT_TRUE(lines[i + 1].starts_with(std::string(models()[i].name) + " ")) << lines[i + 1];
    EXPECT_EQ(lines[i + 1].find("iB  ") - lines[0].find("peak"), 2U) << "columns stand under their titles";
  }
}

TEST_F(ModelsCommand, ListsTheModelsAskedForAtTheBatchAskedFor) {
  const Outcome outcome = run("models vgg416 resnet50 --batch 256");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto lines = rows_of_table(outcome.out);
  ASSERT_EQ(lines.size(), 3U);
  std::istringstream row(lines[2]);
  std::string name, batch, parameters, unit;
  row >> name >> batch >> parameters >> unit;
  EXPECT_EQ(name + " " + batch + " " + parameters + " " + unit, "resnet50 256 25.56 M");
}

TEST_F(ModelsCommand, WritesJsonInsteadOfATable) {
  const Outcome outcome = run("models resnet50 --batch 8 --json result.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const auto models = nlohmann::json::parse(tree_.read("work/result.json")).at("models");
  ASSERT_EQ(models.size(), 1U);
  const auto& row = models[0];
  EXPECT_EQ(row.at("model"), "resnet50");
  EXPECT_EQ(row.at("batch"), 8);
  EXPECT_EQ(row.at("parameters"), 25'557'032);
  EXPECT_GT(row.at("graph_peak_bytes"), 500'000'000);
  EXPECT_GT(row.at("tensors"), row.at("kernels"));
  EXPECT_EQ(row.size(), 8U);
}

TEST_F(ModelsCommand, RefusesWhatIsNoModelAndNoBatch) {
  expect_complaint("models resnet51", "there is no model 'resnet51': did you mean resnet50");
  expect_complaint("models mlp --batch 0", "a batch of 0 for mlp");
  expect_complaint("models --batch many", "--batch");
  expect_complaint("models --json /no/such/folder/result.json", "cannot write /no/such/folder/result.json");
}

}  // namespace
}  // namespace terrace

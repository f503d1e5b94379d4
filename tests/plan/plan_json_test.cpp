// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/random_graph.hpp"
#include "support/random_machine.hpp"
#include "support/random_plan.hpp"
#include "terrace/plan_file.hpp"

namespace terrace {
namespace {

Plan every_instruction() {
  Plan plan;
  plan.planner = "by \"hand\"";
  plan.graph = "00ff";
  plan.machine = "11ee";
  plan.profile = "22dd";
  plan.budget = {Bytes{4096}, Bytes{(1ULL << 63U) - 1}};
  plan.start = {{{0}, {1}, 64}, {{1}, {0}, 0}};
  plan.instructions = {
      Alloc{{2}, {0}, 128}, Copy{{{2}, {3}}, {1}, {0}, 7},     Wait{7}, terrace::Run{{0}, 1, {{0}, {1}}},
      Free{{2}, {0}},       terrace::Run{{4294967295U}, 0, {}}};
  plan.prediction = {Seconds{0.1}, Seconds{1e-300}, Seconds{0}, {{{0}, {1}, Bytes{12}}}};
  return plan;
}

TEST(PlanJson, IsAsTheFormatSays) {
  EXPECT_EQ(to_json(every_instruction()),
            R"({"format":"terrace-plan","version":1,
"planner":"by \"hand\"",
"graph":"00ff","machine":"11ee","profile":"22dd",
"budget":[4096,9223372036854775807],
"prediction":{"step":0.1,"bound":1e-300,"exposed":0,"moved":[[0,1,12]]},
"start":[[0,1,64],
[1,0,0]],
"instructions":[["alloc",2,0,128],
["copy",[2,3],1,0,7],
["wait",7],
["run",0,1,[0,1]],
["free",2,0],
["run",4294967295,0,[]]]}
)");
}

/// What an instruction's text is in a plan.
std::string text_of(const Instruction& instruction) {
  Plan plan;
  plan.instructions = {instruction};
  const std::string text = to_json(plan);
  const auto begin = text.find("\"instructions\":[") + 16;
  return text.substr(begin, text.size() - begin - 3);
}

TEST(PlanJson, SaysOnWhichLanesAnInstructionWorksWhereThereIsSomethingToSay) {
  const std::vector<std::pair<Instruction, std::string>> cases{
      {terrace::Run{{1}, 2, {{0}}, {3}, {}, {}}, R"(["run",1,2,[0],{"engine":3}])"},
      {terrace::Run{{1}, 2, {}, {}, 0, {}}, R"(["run",1,2,[],{"ticket":0}])"},
      {terrace::Run{{1}, 2, {}, {1}, 7, {5, 6}}, R"(["run",1,2,[],{"engine":1,"ticket":7,"after":[5,6]}])"},
      {Copy{{{1}}, {0}, {1}, 4, {4294967295U}}, R"(["copy",[1],0,1,4,{"after":[4294967295]}])"},
  };
  for (const auto& [instruction, text] : cases) {
    EXPECT_EQ(text_of(instruction), text);
    Plan plan;
    plan.instructions = {instruction};
    EXPECT_EQ(plan_from_json(to_json(plan)).value(), plan) << text;
    EXPECT_FALSE(has_one_lane(plan)) << text;
  }
  EXPECT_TRUE(has_one_lane(every_instruction()));
}

TEST(PlanJson, HasARemarkWhereThereIsOne) {
  Plan plan = every_instruction();
  EXPECT_EQ(to_json(plan).find("remark"), std::string::npos);
  plan.remark = "not proven";
  EXPECT_NE(to_json(plan).find("\"remark\":\"not proven\",\n"), std::string::npos);
  EXPECT_EQ(plan_from_json(to_json(plan)).value(), plan);
}

TEST(PlanJson, ReadsWhatItWrites) {
  EXPECT_EQ(plan_from_json(to_json(Plan{})).value(), Plan{});
  EXPECT_EQ(plan_from_json(to_json(every_instruction())).value(), every_instruction());
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Graph graph = random_graph({}, seed);
    const Machine machine = random_machine(seed);
    const Plan plan = random_plan(graph, machine, random_budget(graph, machine, seed), seed);
    ASSERT_EQ(plan_from_json(to_json(plan)).value(), plan);
  }
}

TEST(PlanJson, WritesNoPlanThatCouldNotBeRead) {
  const auto changed = [](const auto& change) {
    Plan plan = every_instruction();
    change(plan);
    return plan;
  };
  EXPECT_THROW(to_json(changed([](Plan& plan) { plan.planner = "\xff"; })), std::logic_error);
  EXPECT_THROW(to_json(changed([](Plan& plan) { plan.start[0].offset = 1ULL << 63U; })), std::logic_error);
  EXPECT_THROW(to_json(changed([](Plan& plan) { plan.prediction.step = Seconds{-1}; })), std::logic_error);
  EXPECT_THROW(to_json(changed([](Plan& plan) { plan.prediction.bound = Seconds{1} / 0.0; })),
               std::logic_error);
}

/// Why the plan with `value` at `where` (a JSON pointer) is refused.
std::string refusal(const std::string& where, const std::string& value) {
  auto json = nlohmann::json::parse(to_json(every_instruction()));
  json[nlohmann::json::json_pointer(where)] = nlohmann::json::parse(value);
  const auto plan = plan_from_json(json.dump());
  return plan.ok() ? "accepted" : plan.error().message;
}

struct Case {
  const char *where, *value, *message;
};

TEST(PlanJson, NamesThePlaceOfEveryMistake) {
  ASSERT_EQ(refusal("/planner", "\"other\""), "accepted");
  const std::vector<Case> cases{
      {"/format", "\"terrace-graph\"", "this is no plan: the key 'format' must be 'terrace-plan'"},
      {"/version", "2", "the key 'version' must be 1, the one this build reads"},
      {"/steps", "1",
       "unknown key 'steps'; there are format, version, planner, remark, graph, machine, profile, "
       "budget, prediction, start, "
       "instructions"},
      {"/graph", "7", "graph: a string is wanted, not number"},
      {"/budget", "{}", "budget: an array is wanted, not object"},
      {"/budget/1", "-1", "budget[1]: a whole number from 0 to 9223372036854775807 is wanted, not -1"},
      {"/prediction/step", "-0.5", "prediction.step: a time not below zero is wanted, not -0.5"},
      {"/prediction/gap", "1", "prediction: unknown key 'gap'; there are step, bound, exposed, moved"},
      {"/prediction/moved/0", "[1]", "prediction.moved[0]: [from, to, bytes] is wanted"},
      {"/start/1", "[1,0]", "start[1]: [tensor, tier, offset] is wanted"},
      {"/start/1/1", "4294967296",
       "start[1][1]: a whole number from 0 to 4294967295 is wanted, not 4294967296"},
      {"/instructions/0", "[]", "instructions[0]: an instruction begins with its name"},
      {"/instructions/0", "7", "instructions[0]: an array is wanted, not number"},
      {"/instructions/0/0", "7", "instructions[0][0]: a string is wanted, not number"},
      {"/instructions/0/0", "\"move\"",
       "instructions[0][0]: 'move' is not known; there are alloc, free, copy, wait, run"},
      {"/instructions/0", "[\"alloc\",1,2]", "instructions[0]: [\"alloc\", tensor, tier, offset] is wanted"},
      {"/instructions/0", "[\"free\",1]", "instructions[0]: [\"free\", tensor, tier] is wanted"},
      {"/instructions/0", "[\"copy\",[1],2,3]",
       "instructions[0]: [\"copy\", [tensors], from, to, ticket] is wanted"},
      {"/instructions/0", "[\"copy\",1,2,3,4]", "instructions[0][1]: an array is wanted, not number"},
      {"/instructions/0", "[\"wait\"]", "instructions[0]: [\"wait\", ticket] is wanted"},
      {"/instructions/0", "[\"run\",1,0]", "instructions[0]: [\"run\", kernel, variant, [tiers]] is wanted"},
      {"/instructions/0", "[\"run\",1,0,[0],3]", "instructions[0][4]: an object is wanted, not number"},
      {"/instructions/0", "[\"run\",1,0,[0],{\"lane\":3}]",
       "instructions[0][4]: unknown key 'lane'; there are engine, ticket, after"},
      {"/instructions/0", "[\"run\",1,0,[0],{\"after\":3}]",
       "instructions[0][4].after: an array is wanted, not number"},
      {"/instructions/0", "[\"run\",1,0,[0],{\"ticket\":-3}]",
       "instructions[0][4].ticket: a whole number from 0 to 4294967295 is wanted, not -3"},
      {"/instructions/0", "[\"copy\",[1],2,3,4,{\"engine\":1}]",
       "instructions[0][5]: unknown key 'engine'; there are after"},
      {"/instructions/3/3/1", "1.5",
       "instructions[3][3][1]: a whole number from 0 to 4294967295 is wanted, not 1.5"},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(refusal(one.where, one.value), std::string("cannot read the plan: ") + one.message)
        << one.where;
  }
}

TEST(PlanJson, WantsEveryKey) {
  const auto whole = nlohmann::json::parse(to_json(every_instruction()));
  for (const auto& [key, value] : whole.items()) {
    auto json = whole;
    json.erase(key);
    EXPECT_FALSE(plan_from_json(json.dump()).ok()) << key;
  }
}

class PlanFile : public ::testing::Test {
 protected:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("terrace-plan-" + std::to_string(getpid()));
  void SetUp() override { std::filesystem::create_directory(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
};

TEST_F(PlanFile, IsReadAsItWasWritten) {
  write_plan(every_instruction(), folder_ / "plan.json");
  EXPECT_EQ(read_plan(folder_ / "plan.json").value(), every_instruction());
}

TEST_F(PlanFile, SaysWhichFileIsWrong) {
  const auto path = folder_ / "plan.json";
  EXPECT_EQ(read_plan(path).error().message,
            "cannot read " + path.native() + ": No such file or directory; name another file");
  std::ofstream(path) << "{";
  EXPECT_EQ(read_plan(path).error().message,
            path.native() + ": cannot read the plan: line 1, column 2: the text is not JSON here");
  EXPECT_THROW(write_plan({}, folder_ / "none" / "plan.json"), ResultError);
}

}  // namespace
}  // namespace terrace

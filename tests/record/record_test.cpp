// SPDX-License-Identifier: Apache-2.0
// Records as text: what is written is read again, and what was changed is refused.
#include "terrace/record.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "record/small_record.hpp"
#include "support/random_graph.hpp"
#include "terrace/profile_json.hpp"

namespace terrace {
namespace {

using Json = nlohmann::json;
using test::small_record;

std::string refusal(const std::string& text) {
  const auto record = record_from_json(text);
  EXPECT_FALSE(record.ok());
  return record.ok() ? "" : record.error().message;
}

/// The text with one thing changed.
template <class Change>
std::string changed(Change change) {
  Json json = Json::parse(to_json(small_record()));
  change(json);
  return json.dump();
}

void expect_refused(const std::string& text, const std::string& part) {
  EXPECT_NE(refusal(text).find(part), std::string::npos) << refusal(text);
}

TEST(Record, IsReadAsItWasWritten) {
  Record record = small_record();
  EXPECT_EQ(record_from_json(to_json(record)).value(), record);
  record.result = R"({"step_seconds": [0.5, 0.25]})";
  record.batch.reset();
  EXPECT_EQ(record_from_json(to_json(record)).value(), record);
  record.plan.reset();
  EXPECT_EQ(record_from_json(to_json(record)).value(), record);
}

TEST(Record, AnotherFormattingIsTheSameRecord) {
  const Record record = small_record();
  EXPECT_EQ(record_from_json(Json::parse(to_json(record)).dump(3)).value(), record);
}

TEST(Record, RefusesAGraphThatWasChangedSince) {
  expect_refused(changed([](Json& json) { json["graph"]["tensors"][0]["bytes"] = 4096; }),
                 "the graph was changed after the record was written (fingerprint ");
}

TEST(Record, RefusesAMachineThatWasChangedSince) {
  expect_refused(changed([](Json& json) { json["machine"]["tiers"][1]["read"] = 1e9; }),
                 "the machine was changed after the record was written");
}

TEST(Record, RefusesTimesThatWereChangedSince) {
  expect_refused(changed([](Json& json) { json["profile"]["kernels"][0]["times"][0][0][1] = 1.5; }),
                 "the profile was changed after the record was written");
}

TEST(Record, RefusesAPlanThatWasChangedSince) {
  expect_refused(changed([](Json& json) { json["plan"]["instructions"].erase(0); }),
                 "the plan was changed after the record was written");
  expect_refused(changed([](Json& json) { json.erase("plan"); }),
                 "the plan was changed after the record was written");
}

TEST(Record, RefusesPartsOfDifferentRecords) {
  Record record = small_record();
  record.plan->graph = "0123456789abcdef";
  expect_refused(to_json(record), "the plan was made for another graph than the record's");
  record = small_record();
  record.profile.machine = "0123456789abcdef";
  record.plan->profile = fingerprint(record.profile);
  expect_refused(to_json(record), "the profile was made for another machine than the record's");
}

TEST(Record, RefusesAProfileThatDoesNotFitItsGraph) {
  Record record = small_record();
  record.profile.kernels[1].variants[0][0].tiers.pop_back();
  record.plan.reset();
  expect_refused(to_json(record), "the profile of kernel ");
  record = small_record();
  record.profile.kernels.pop_back();
  record.plan.reset();
  expect_refused(to_json(record), "kernels and the graph");
}

TEST(Record, RefusesABudgetThatIsNotTheMachines) {
  Record record = small_record();
  record.budget.pop_back();
  expect_refused(to_json(record), "budget: one amount for each of 2 tiers is wanted, not 1");
  record = small_record();
  record.budget[0] = record.machine.tiers[0].capacity + Bytes{64};
  expect_refused(to_json(record), "budget[0]: tier ");
}

TEST(Record, NamesThePlaceOfAMistake) {
  expect_refused("", "the text is no JSON object");
  expect_refused("{\"format\": ", "the text is no JSON object");
  expect_refused("{}", "this is no record");
  expect_refused(R"({"format": "terrace-record", "version": 2})", "the key 'version' must be 1");
  expect_refused(changed([](Json& json) { json["extra"] = 1; }), "unknown key 'extra'");
  expect_refused(changed([](Json& json) { json.erase("machine"); }), "the key 'machine' is missing");
  expect_refused(changed([](Json& json) { json["peak"] = -1; }), "peak: a whole number");
  expect_refused(changed([](Json& json) { json["result"] = 3; }), "result: an object is wanted");
  expect_refused(changed([](Json& json) { json["graph"]["kernels"][0]["flops"] = "x"; }),
                 "graph: ");
}

TEST(Record, OfTenThousandKernelsIsSmallAndReadInASecond) {
  RandomGraphOptions options;
  options.kernels = 10'000;
  Record record = small_record();
  record.graph = RandomGraph(options, 1).run();
  record.profile = estimate(record.graph, record.machine);
  record.plan.reset();
  const std::string text = to_json(record);
  EXPECT_LT(text.size(), std::size_t{12} << 20U);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(record_from_json(text).value(), record);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
}

TEST(ProfileJson, KeepsMeasuredTimesAndAccesses) {
  Profile profile = small_record().profile;
  profile.kernels[0].variants[0].push_back({{{0}, {1}, {0}}, Seconds{0.1}, Seconds{1e-7}, Seconds{0.003}, 17});
  profile.kernels[0].operands = {{1, 0, 12}, {0.25, 2.5, 0}, {0, 1, 7}};
  EXPECT_EQ(profile_from_json(to_json(profile)).value(), profile);
}

TEST(ProfileJson, RefusesWhatIsNone) {
  const auto refused = [](const char* text) { return profile_from_json(text).error().message; };
  EXPECT_NE(refused("{}").find("this is no profile"), std::string::npos);
  const std::string begin = R"({"format":"terrace-profile","version":1,"graph":"","machine":"","kernels":)";
  EXPECT_NE(refused((begin + "[{}]}").c_str()).find("kernels[0]: the key 'times' is missing"), std::string::npos);
  EXPECT_NE(refused((begin + R"([{"times":[[[[0],-1]]]}]})").c_str()).find("not below zero"), std::string::npos);
  EXPECT_NE(refused((begin + R"([{"times":[[[[0]]]]}]})").c_str()).find("[[tiers], seconds]"), std::string::npos);
}

}  // namespace
}  // namespace terrace

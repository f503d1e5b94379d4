// SPDX-License-Identifier: Apache-2.0
// `terrace advise` as a user meets it.
#include <gtest/gtest.h>

#include "cli/prepared_cache.hpp"
#include "terrace/machine_file.hpp"

namespace terrace {
namespace {

using test::Outcome;
using Json = nlohmann::json;

// On a machine of the papers nothing is measured.
const std::string kAdvised = "mlp --batch 512 --optimizer sgd ";
const std::string kLinked = kAdvised + "--machine v100-pcie3 --fast 60%,80% ";
const std::string kAddressable = kAdvised + "--machine optane-autotm --fast 20%,60% ";

class AdviseCommand : public test::PreparedProgram {};

TEST_F(AdviseCommand, AnswersInOneSentenceUnderTheCurve) {
  const Outcome outcome = run("advise " + kLinked + "--slowdown 400%");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* part : {"mlp with batch 512 on v100-pcie3, by best: a peak of", "frontier", "*\n",
                           "mlp with batch 512 runs within 400% of full speed in ", " MB of device, ",
                           "% of what it asks for; 1 MB "
                           "more is worth at most ",
                           "1 GB/s more from host to device is worth "})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " in\n" << outcome.out;
  EXPECT_EQ(outcome.out.find("price"), std::string::npos) << "that machine has none\n" << outcome.out;
}

TEST_F(AdviseCommand, ShowsPricesWhereTheyAreKnown) {
  const Outcome outcome = run("advise " + kAddressable);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"price  of all-dram  speed/price", "; its memory costs "})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " in\n" << outcome.out;
}

TEST_F(AdviseCommand, WritesJsonWithStableKeys) {
  const Json json = json_of("advise " + kLinked + "--slowdown 400% --planner autotm-sync");
  EXPECT_EQ(json.at("model"), "mlp");
  EXPECT_EQ(json.at("batch"), 512);
  EXPECT_EQ(json.at("machine"), "v100-pcie3");
  EXPECT_EQ(json.at("planner"), "autotm-sync");
  EXPECT_EQ(json.at("slowdown"), 4.0);
  EXPECT_TRUE(json.at("fast_only_price").is_null());
  const Json& curve = json.at("curve");
  ASSERT_GE(curve.size(), 4U);
  for (std::size_t i = 0; i < curve.size(); ++i) {
    EXPECT_EQ(curve[i].at("verified"), true);
    EXPECT_TRUE(curve[i].at("price").is_null());
    EXPECT_LE(curve[i].at("planned_bytes").at("device"), curve[i].at("budget_bytes"));
    if (i > 0) {
      EXPECT_LE(curve[i].at("predicted_step_seconds"), curve[i - 1].at("predicted_step_seconds"));
    }
  }
  EXPECT_EQ(curve.back().at("planner"), "all-fast");
  EXPECT_EQ(curve.back().at("budget_bytes"), json.at("fast_only_bytes"));
  const Json& least = json.at("least");
  EXPECT_LE(least.at("slowdown"), 4 + 1e-9);
  EXPECT_LT(least.at("budget_bytes"), json.at("graph_peak_bytes"));
  const Json& shadow = json.at("shadow_prices");
  EXPECT_EQ(shadow.at("budget_bytes"), least.at("budget_bytes"));
  EXPECT_GT(shadow.at("seconds_per_gigabyte").at("device"), 0.0);
  EXPECT_EQ(shadow.at("seconds_per_gigabyte").at("host"), 0.0);
  EXPECT_GT(shadow.at("seconds_per_gigabyte_per_second").at("host>device"), 0.0);
  EXPECT_EQ(shadow.at("priced_by"), "moving_plan") << "kernels cannot use the host's memory";
  EXPECT_GT(shadow.at("priced_bound_seconds"), 0.0);
}

TEST_F(AdviseCommand, TakesPricesFromTheUser) {
  const Json json = json_of("advise " + kAddressable + "--price dram=20,pmm=5");
  const Json& point = json.at("curve").front();
  const double by_hand = (20 * point.at("used_bytes").at("dram").get<double>() +
                          5 * point.at("used_bytes").at("pmm").get<double>()) /
                         1e9;
  EXPECT_NEAR(point.at("price").get<double>(), by_hand, 1e-9);
  EXPECT_NEAR(point.at("price_share").get<double>(), by_hand / json.at("fast_only_price").get<double>(),
              1e-9);
}

TEST_F(AdviseCommand, SaysWhenNoBudgetReachesTheSlowdown) {
  const Json json = json_of("advise " + kLinked + "--slowdown 1000%");
  Machine machine = machine_preset("v100-pcie3").value();
  machine.tiers[0].capacity =
      round_down(Bytes{json.at("graph_peak_bytes").get<std::uint64_t>() / 10 * 7}, Bytes{4096});
  write_machine(machine, work() / "small.json");
  expect_complaint("advise " + kAdvised + "--machine small.json --slowdown 0%",
                   "is within 0% of full speed: the fastest is ");
}

TEST_F(AdviseCommand, RefusesWhatIsNoQuestion) {
  expect_complaint("advise", "model is required");
  expect_complaint("advise " + kLinked + "--slowdown 5", "'5' is no slowdown: give a percentage");
  expect_complaint("advise " + kLinked + "--slowdown much", "'much' is no slowdown");
  expect_complaint("advise " + kLinked + "--price 16", "'16' is no price");
  expect_complaint("advise " + kLinked + "--price device=-1,host=1", "'device=-1' is no price");
  expect_complaint("advise " + kAddressable + "--price dram=16.61,pmem=7.85",
                   "machine optane-autotm has no tier 'pmem': its tiers are dram and pmm");
  expect_complaint("advise " + kLinked + "--price device=16",
                   "tier host of machine v100-pcie3 has no price: add host=NUMBER");
  expect_complaint("advise " + kLinked + "--planner bset", "there is no planner 'bset'");
  expect_complaint("advise " + kLinked + "--json none/result.json", "cannot write none/result.json");
}

}  // namespace
}  // namespace terrace

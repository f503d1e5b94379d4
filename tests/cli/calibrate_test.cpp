// SPDX-License-Identifier: Apache-2.0
// `terrace calibrate` as a user meets it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "support/long_tests.hpp"
#include "terrace/machine_file.hpp"

namespace terrace {
namespace {

using test::Outcome;

class CalibrateCommand : public test::Program {
 protected:
  CalibrateCommand() { setenv("XDG_CACHE_HOME", (tree_.path() / "cache").c_str(), 1); }
};

TEST_F(CalibrateCommand, PrintsTablesAndKeepsTheMachineInTheCache) {
  const std::string rounds = long_tests() ? "" : " --rounds 1";
  const Outcome outcome = run("calibrate --slow file:spill:1GiB,buffered" + rounds);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* part :
       {"GFLOP/s in single precision", "capacity", "latency us", "measured on 20", "link, GB/s", "64KiB",
        "16MiB", "dram > file", "file > dram", "both ways", "kernels lose", "file:spill:1GiB,buffered"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " in\n" << outcome.out;
  const auto folder = tree_.path() / "cache/terrace/machines";
  const std::filesystem::directory_iterator found(folder);
  EXPECT_NE(outcome.out.find("written to " + found->path().string()), std::string::npos) << outcome.out;
  EXPECT_EQ(read_machine(found->path()).value().tiers.size(), 2U);
}

TEST_F(CalibrateCommand, WritesTheMachineAndJsonWhereItIsTold) {
  const Outcome outcome = run("calibrate --threads 1 -o machine.json --json result.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const Machine machine = read_machine(work() / "machine.json").value();
  EXPECT_EQ(machine.compute.threads, 1U);
  const auto json = nlohmann::json::parse(tree_.read("work/result.json"));
  EXPECT_EQ(json.at("file"), "machine.json");
  EXPECT_EQ(machine_from_json(json.at("machine").dump()).value(), machine);
  EXPECT_FALSE(std::filesystem::exists(tree_.path() / "cache"));
}

TEST_F(CalibrateCommand, ListsThePapersMachines) {
  const Outcome outcome = run("calibrate --list");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const MachineInfo& info : machine_presets())
    EXPECT_NE(outcome.out.find("\n" + info.name + " "), std::string::npos) << outcome.out;
  ASSERT_EQ(run("calibrate --list --json list.json").code, 0);
  EXPECT_EQ(nlohmann::json::parse(tree_.read("work/list.json")).at("machines").size(),
            machine_presets().size());
}

TEST_F(CalibrateCommand, RefusesWhatCannotBeMeasuredOrWritten) {
  expect_complaint("calibrate --slow dsk:1GiB", "'dsk' is no kind of tier");
  expect_complaint("calibrate --slow file:/no/such/folder/spill:1GiB", "/no/such/folder");
  expect_complaint("calibrate -o /no/such/folder/machine.json", "/no/such/folder");
  expect_complaint("calibrate --threads 0", "--threads: '0' does not fit");
  expect_complaint("calibrate --rounds 0", "--rounds: '0' does not fit");
}

}  // namespace
}  // namespace terrace

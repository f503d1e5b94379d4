// SPDX-License-Identifier: Apache-2.0
// The built program as a user meets it: what it prints, where, and how it ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/program.hpp"
#include "terrace/version.hpp"

namespace terrace {
namespace {

using test::Outcome;
using test::Program;

TEST_F(Program, PrintsItsVersion) {
  const Outcome outcome = run("--version");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(outcome.out.starts_with("terrace " TERRACE_VERSION " (commit ")) << outcome.out;
  EXPECT_NE(outcome.out.find("; with "), std::string::npos) << outcome.out;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1) << outcome.out;
}

TEST_F(Program, PrintsItsHelpWhenAskedAndWhenAskedNothing) {
  const Outcome asked = run("--help"), alone = run("");
  EXPECT_EQ(asked.code, 0);
  EXPECT_EQ(alone.code, 0);
  EXPECT_EQ(asked.out, alone.out);
  EXPECT_NE(asked.out.find("doctor"), std::string::npos);
  EXPECT_NE(run("doctor --help").out.find("--path DIR"), std::string::npos);
}

TEST_F(Program, SaysItsStagesToAFileWhenItTakesLong) {
  tree_.write("work/slow.py", "import sys, time\nsys.stdin.read()\ntime.sleep(1.5)\nsys.exit('no')\n");
  const std::string command = "plan mlp --machine v100-pcie3 --planner 'exec:python3 slow.py'";
  const Outcome outcome = run(command, "TERRACE_PROGRESS=on");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("building the graph of mlp\n"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("kernels with exec:python3 slow.py\n"), std::string::npos) << outcome.err;
  EXPECT_EQ(run("graph mlp -o g.json", "TERRACE_PROGRESS=on").err, "") << "it takes no second";
}

TEST_F(Program, AsksForThePercentThatWasLeftOut) {
  expect_complaint("plan mlp --fast 20", "'20' is 20 bytes: did you mean 20%?");
  expect_complaint("compare mlp --fast 20%,40", "did you mean 40%?");
}

TEST_F(Program, TellsItsExitCodesInItsHelp) {
  EXPECT_NE(run("--help").out.find("130 interrupted"), std::string::npos);
}

TEST_F(Program, NamesWhatItDoesNotKnow) {
  expect_complaint("docter", "unknown command 'docter': the commands are doctor");
  expect_complaint("--colour", "unknown option --colour");
  expect_complaint("doctor --pth x", "unknown option --pth: see terrace doctor --help");
  expect_complaint("doctor house", "doctor takes no argument 'house'");
  expect_complaint("doctor --path", "--path");
}

TEST_F(Program, RefusesAFolderItCannotMeasureIn) {
  tree_.write("file", "");
  expect_complaint("doctor --path /no/such/folder", "/no/such/folder does not exist");
  expect_complaint("doctor --path " + (tree_.path() / "file").string(), "is not a folder");
  expect_complaint("doctor --path /proc", "cannot create a file in /proc");
}

TEST_F(Program, RefusesAFileItCannotWrite) {
  expect_complaint("doctor --json /no/such/folder/result.json", "cannot write /no/such/folder/result.json");
  expect_complaint("doctor --json /dev/full", "cannot write /dev/full (No space left on device)");
}

TEST_F(Program, DoctorPrintsOneLineForEachCheck) {
  const Outcome outcome = run("doctor");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  std::istringstream lines(outcome.out);
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    std::string name, status;
    std::istringstream(line) >> name >> status;
    EXPECT_TRUE(status == "ok" || status == "limited" || status == "missing") << line;
    EXPECT_EQ(status != "ok", line.find("To do: ") != std::string::npos) << line;
    names.push_back(name);
  }
  const std::vector<std::string> expected{"cores",    "instructions", "memory",    "numa",       "huge_pages",
                                          "io_uring", "memlock",      "direct_io", "disk",       "dax",
                                          "map_sync", "kernels",      "gpu",       "userfaultfd"};
  EXPECT_EQ(names, expected);
}

TEST_F(Program, DoctorWritesJsonInsteadOfATableAndLeavesNothingElse) {
  const Outcome outcome = run("doctor --path . --json result.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const auto json = nlohmann::json::parse(tree_.read("work/result.json"));
  EXPECT_EQ(json.at("checks").size(), 14U);
  for (const auto& check : json.at("checks")) {
    EXPECT_EQ(check.size(), 4U);
    EXPECT_EQ(check.at("advice").get<std::string>().empty(), check.at("status") == "ok") << check;
    EXPECT_FALSE(check.at("found").get<std::string>().empty()) << check;
  }
  EXPECT_GE(json.at("cores").at("usable").get<int>(), 1);
  EXPECT_GT(json.at("memory").at("total_bytes").get<std::uint64_t>(), 0U);
  EXPECT_EQ(json.at("disk").at("path"), std::filesystem::weakly_canonical(work()).string());
  const auto left = std::distance(std::filesystem::directory_iterator(work()), {});
  EXPECT_EQ(left, 1);
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// `terrace ann` as a user meets it.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "../../bench/memory_group.hpp"
#include "cli/program.hpp"

namespace terrace {
namespace {

using namespace literals;
using test::Outcome;
using Json = nlohmann::json;

class AnnCommand : public test::Program {
 protected:
  Json json_of(const std::string& arguments) {
    const Outcome outcome = run(arguments + " --json result.json");
    EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.err;
    std::ifstream in(work() / "result.json");
    return Json::parse(in, nullptr, false);
  }
  void make_index(const std::string& more = "") {
    const std::string kind = " --clusters 10 --intrinsic 6";
    for (const std::string& command :
         {"ann data clustered:2k,16 -o data.fbin" + kind,
          "ann data clustered:50,16 --queries -o queries.npy" + kind,
          std::string("ann truth data.fbin queries.npy -o truth.ibin"),
          "ann build data.fbin -o index --m 8 --ef-construction 40 --fast 40% " + more}) {
      const Outcome outcome = run(command);
      ASSERT_EQ(outcome.code, 0) << command << "\n" << outcome.err;
    }
  }
};

TEST_F(AnnCommand, LeadsFromVectorsToNeighbours) {
  make_index();
  const Json info = json_of("ann info index --check");
  EXPECT_EQ(info.at("vectors"), 2000);
  EXPECT_EQ(info.at("metric"), "l2");
  EXPECT_EQ(info.at("checked"), true);
  Json before;
  for (const char* slow : {"memory", "disk", "emulated:4MiB,read=39GB/s,write=13GB/s,latency=300ns"}) {
    const Json found = json_of(
        std::string("ann search index queries.npy --truth truth.ibin --ef1 20 --ef0 60 --slow ") + slow);
    EXPECT_EQ(found.at("queries"), 50);
    EXPECT_GE(found.at("recall"), 0.95) << slow;
    EXPECT_EQ(found.at("work_per_query").at("reads") > 0, std::string(slow) == "disk");
    if (!before.is_null()) {
      EXPECT_EQ(found.at("work_per_query").at("slow_distances"),
                before.at("work_per_query").at("slow_distances"));
    }
    before = found;
  }
  const Json tuned = json_of("ann tune index queries.npy --truth truth.ibin --recall 0.9 --latency 60s");
  EXPECT_GE(tuned.at("recall"), 0.9);
}

TEST_F(AnnCommand, PrintsWhatItDid) {
  make_index();
  const Outcome info = run("ann info index");
  for (const char* part : {"vectors      2000 of 16 dimensions", "fast ", "slow ", "metric       l2"})
    EXPECT_NE(info.out.find(part), std::string::npos) << part << " in\n" << info.out;
  const Outcome found = run("ann search index queries.npy --truth truth.ibin");
  for (const char* part :
       {"queries      50, ", "recall       ", " of the 10 nearest", "distances in fast memory"})
    EXPECT_NE(found.out.find(part), std::string::npos) << part << " in\n" << found.out;
}

TEST_F(AnnCommand, RefusesWhatItCannotDo) {
  expect_complaint("ann", "subcommand is required");
  expect_complaint("ann build none.fvecs -o index", "cannot read none.fvecs");
  expect_complaint("ann build data.csv -o index", "data.csv is no file of vectors by its name");
  expect_complaint("ann info none", "none holds no index");
  expect_complaint("ann data clustered -o data.fbin", "'clustered' is no recipe");
  expect_complaint("ann data clustered:0,3 -o data.fbin", "is no recipe");
  make_index();
  expect_complaint("ann build data.fbin -o other --metric l3", "there is no metric 'l3'");
  expect_complaint("ann build data.fbin -o other --fast much", "'much' is no amount of memory");
  expect_complaint("ann build data.fbin -o other --fast 4KiB", "give it at least");
  expect_complaint("ann search index data.fbin --truth truth.ibin",
                   "the neighbours of 50 queries and there are 2000");
  expect_complaint("ann search index queries.npy --slow fake", "fake");
  expect_complaint("ann tune index queries.npy --truth truth.ibin --latency 1ns", "the fastest takes");
}

/// Within a control group without swap a process that takes too much is killed, so that its end tells whether
/// a budget was kept: page cache counts, and what the system could not take back of it, too.
class AnnBudget : public AnnCommand {
 protected:
  void SetUp() override {
    try {
      const bench::MemoryGroup group("ann-test", 1_GiB, bench::MemoryGroup::Swap::none);
    } catch (const std::runtime_error& error) {
      GTEST_SKIP() << error.what();
    }
  }
  Outcome run_in(const bench::MemoryGroup& group, const std::string& arguments) {
    std::string shell = "TERRACE_PROGRESS=off";
    for (const std::string& word : group.within({})) shell += " '" + word + "'";
    return run(arguments, shell);
  }
  /// What the program takes with hardly any vectors. Earlier runs bring its pages into memory, so that no
  /// group is charged for them.
  Bytes program() {
    const std::string few = " --ef1 8 --ef0 10 --beam 4 --slow disk";
    EXPECT_EQ(run("ann data clustered:200,4 -o few.fbin --clusters 2 --intrinsic 2").code, 0);
    EXPECT_EQ(run("ann build few.fbin -o few --m 6 --ef-construction 20 --memory 16MiB").code, 0);
    EXPECT_EQ(run("ann search few few.fbin" + few).code, 0);
    const bench::MemoryGroup group("ann-test", 1_GiB, bench::MemoryGroup::Swap::none);
    EXPECT_EQ(run_in(group, "ann data clustered:10,4 -o few.fbin --clusters 2 --intrinsic 2").code, 0);
    return group.peak();
  }
  /// In a group of the budget and a percent, and of the program. The kernel may charge a group for up to 64
  /// pages on each processor before anybody uses them.
  Outcome run_within(Bytes budget, const std::string& arguments) {
    const Bytes batches = 256_KiB * std::thread::hardware_concurrency();
    // What else a group is charged for depends on who touched a shared page first: one run of three decides.
    Outcome outcome;
    for (int i = 0; i < 3; ++i) {
      const bench::MemoryGroup group("ann-test", program() + budget + budget / 100 + batches,
                                     bench::MemoryGroup::Swap::none);
      outcome = run_in(group, arguments);
      if (outcome.code != 137) break;
    }
    return outcome;
  }
};

TEST_F(AnnBudget, OfABuildAndOfASearchIsNotPassedByAPercent) {
  const std::string kind = " --clusters 20 --intrinsic 8";
  ASSERT_EQ(run("ann data clustered:40k,96 -o data.fbin" + kind).code, 0);
  ASSERT_EQ(run("ann data clustered:50,96 --queries -o queries.fbin" + kind).code, 0);
  const Outcome built = run_within(16_MiB,
                                   "ann build data.fbin -o index --m 6 --ef-construction 20 --memory 16MiB "
                                   "--fast 6MiB --cache 1MiB --codes 24");
  ASSERT_EQ(built.code, 0) << built.err;
  const Outcome found =
      run_within(6_MiB, "ann search index queries.fbin --slow disk --cache 1MiB --ef1 32 --ef0 64 --beam 24");
  EXPECT_EQ(found.code, 0) << found.err;
}

}  // namespace
}  // namespace terrace

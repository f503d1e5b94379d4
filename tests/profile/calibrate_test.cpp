// SPDX-License-Identifier: Apache-2.0
#include "profile/calibrate.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "base/system.hpp"
#include "cli/temporary_tree.hpp"
#include "profile/this_machine.hpp"
#include "terrace/machine_file.hpp"
#include "terrace/tier.hpp"

namespace terrace {
namespace {

using namespace literals;

/// Little of everything: that it works is tested here, not how well it measures.
CalibrateOptions quick(const std::vector<std::string>& slow) {
  CalibrateOptions options;
  for (const std::string& text : slow) options.slow.push_back(parse_tier_spec(text).value());
  options.area = 4_MiB;
  options.sizes = {64_KiB, 1_MiB};
  options.rounds = 1;
  options.round = Seconds{1e-4};
  return options;
}

std::string file_spec(const test::TemporaryTree& tree, const char* rest = ":1GiB,buffered") {
  return "file:" + (tree.path() / "spill").string() + rest;
}

void expect_sane(const Machine& machine) {
  const auto valid = validate(machine);
  ASSERT_TRUE(valid.ok()) << valid.error().message;
  const std::size_t tiers = machine.tiers.size();
  EXPECT_EQ(machine.links.size(), tiers * (tiers - 1));
  for (const Link& link : machine.links) EXPECT_GT(link.time(16_MiB), link.time(1_MiB));
  for (const MachineTier& tier : machine.tiers) EXPECT_GT(tier.latency.count(), 0);
}

TEST(Calibrate, MeasuresMemoryAlone) {
  const Machine machine = calibrate(quick({})).value();
  expect_sane(machine);
  EXPECT_EQ(machine.name, "this");
  EXPECT_TRUE(machine.source.starts_with("measured on 20")) << machine.source;
  EXPECT_EQ(machine.tiers[0].name, "dram");
  EXPECT_EQ(machine.tiers[0].granularity, 64_B);
  EXPECT_GT(machine.tiers[0].capacity, 64_MiB);
}

TEST(Calibrate, MeasuresADiskAndSlowMemoryWithAllLinks) {
  const test::TemporaryTree tree;
  const std::string emulated = "emulated:2GiB,read=1GB/s,write=1GB/s,latency=304ns";
  std::vector<double> shares;
  CalibrateOptions options = quick({emulated, file_spec(tree)});
  options.progress = [&](std::string_view what, double share) {
    EXPECT_FALSE(what.empty());
    shares.push_back(share);
  };
  const Machine machine = calibrate(options).value();
  expect_sane(machine);
  EXPECT_EQ(machine.tiers[0].granularity, 4_KiB) << "no copy to the disk is bounced";
  EXPECT_EQ(machine.tiers[1].name, "emulated");
  EXPECT_EQ(machine.tiers[1].capacity, 2_GiB) << "of which little was opened";
  EXPECT_EQ(machine.tiers[1].spec, emulated);
  EXPECT_EQ(machine.tiers[1].latency, Seconds{304e-9});
  EXPECT_FALSE(machine.tiers[2].addressable);
  EXPECT_FALSE(machine.link({0}, {1})->by_threads.empty());
  EXPECT_EQ(machine.link({0}, {1})->by_threads.front().threads, 1U);
  EXPECT_TRUE(machine.link({0}, {2})->by_threads.empty()) << "no threads copy to a disk";
  EXPECT_EQ(machine.tiers[2].spec, file_spec(tree));
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.front(), 0);
  EXPECT_LT(shares.back(), 1);
  EXPECT_TRUE(std::filesystem::is_empty(tree.path())) << "nothing stays";
}

TEST(Calibrate, MeasuresADiskWithinItsLimits) {
  const test::TemporaryTree tree;
  const std::string limited = file_spec(tree, ":1GiB,read=160MB/s,write=80MB/s,buffered");
  CalibrateOptions options = quick({limited});
  options.round = Seconds{0.1};  // several transfers: the first of them does not wait
  const Machine machine = calibrate(options).value();
  EXPECT_GT(machine.link({1}, {0})->time(1_MiB), Seconds{0.7 * 1.05 / 160});
  EXPECT_GT(machine.link({0}, {1})->time(1_MiB), Seconds{0.7 * 1.05 / 80});
  EXPECT_EQ(machine.tiers[1].spec, limited);
}

TEST(Calibrate, LeavesAFileThatIsKeptAlone) {
  const test::TemporaryTree tree;
  tree.write("spill", "precious");
  const Machine machine = calibrate(quick({file_spec(tree, ":1GiB,keep,buffered")})).value();
  EXPECT_EQ(tree.read("spill"), "precious");
  EXPECT_EQ(machine.tiers[1].spec, file_spec(tree, ":1GiB,keep,buffered"));
}

TEST(Calibrate, RefusesATierThatCannotBeOpened) {
  const auto machine = calibrate(quick({"file:/no/such/folder/spill:1GiB"}));
  ASSERT_FALSE(machine.ok());
  EXPECT_NE(machine.error().message.find("/no/such/folder"), std::string::npos) << machine.error().message;
}

TEST(Calibrate, WantsSizesThatAscendAndFit) {
  CalibrateOptions options = quick({});
  options.sizes = {1_MiB, 1_MiB};
  EXPECT_THROW(static_cast<void>(calibrate(options)), std::logic_error);
  options.sizes = {4_MiB};
  EXPECT_THROW(static_cast<void>(calibrate(options)), std::logic_error);
  options.sizes = {};
  EXPECT_THROW(static_cast<void>(calibrate(options)), std::logic_error);
  options = quick({});
  options.rounds = 0;
  EXPECT_THROW(static_cast<void>(calibrate(options)), std::logic_error);
}

// ---- What is kept

struct Cache {
  test::TemporaryTree tree;
  CalibrateOptions options = quick({file_spec(tree)});
  std::filesystem::path folder = tree.path() / "cache/machines";
  std::filesystem::path file = machine_cache_file(folder, options);

  Machine get() const { return this_machine(options, folder).value(); }
  /// Changes what is kept in a way no measurement gives.
  void mark() const {
    Machine machine = read_machine(file).value();
    machine.compute.flops_per_second = 42;
    write_machine(machine, file);
  }
  bool is_marked(const Machine& machine) const { return machine.compute.flops_per_second == 42; }
};

TEST(ThisMachine, IsMeasuredOnceAndKept) {
  const Cache cache;
  const Machine machine = cache.get();
  EXPECT_EQ(read_machine(cache.file).value(), machine);
  cache.mark();
  EXPECT_TRUE(cache.is_marked(cache.get()));
}

TEST(ThisMachine, IsMeasuredAgainAfterThirtyDays) {
  const Cache cache;
  static_cast<void>(cache.get());
  cache.mark();
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(cache.file, now - std::chrono::hours(29 * 24));
  EXPECT_TRUE(cache.is_marked(cache.get()));
  std::filesystem::last_write_time(cache.file, now - std::chrono::hours(31 * 24));
  EXPECT_FALSE(cache.is_marked(cache.get()));
}

TEST(ThisMachine, IsMeasuredAgainWhereTheFileIsBroken) {
  const Cache cache;
  cache.tree.write("cache/machines/" + cache.file.filename().string(), "{");
  static_cast<void>(cache.get());
  EXPECT_TRUE(read_machine(cache.file).ok());
}

TEST(ThisMachine, HasTheCapacitiesAskedForNow) {
  Cache cache;
  static_cast<void>(cache.get());
  cache.mark();
  cache.options.slow[0].capacity = 3_GiB;
  cache.options.slow[0].path += "2";
  const Machine machine = cache.get();
  EXPECT_TRUE(cache.is_marked(machine)) << "another file in the folder is as fast";
  EXPECT_EQ(machine.tiers[1].capacity, 3_GiB);
  EXPECT_EQ(machine.tiers[1].spec, to_string(cache.options.slow[0]));
}

TEST(ThisMachine, IsAnotherWithOtherTiers) {
  const auto name = [](const char* spec) {
    return machine_cache_file("/", quick({spec})).filename().string();
  };
  EXPECT_TRUE(name("file:/a/b:1GiB").starts_with("dram-file-")) << name("file:/a/b:1GiB");
  EXPECT_EQ(name("file:/a/b:1GiB"), name("file:/a/c:2GiB"));
  EXPECT_NE(name("file:/a/b:1GiB"), name("file:/c/b:1GiB"));
  EXPECT_NE(name("file:/a/b:1GiB"), name("file:/a/b:1GiB,pool"));
  EXPECT_NE(name("numa:0:1GiB"), name("numa:1:1GiB"));
  CalibrateOptions all = quick({}), some = all;
  some.threads = probe_cores().usable() + 1;
  EXPECT_NE(machine_cache_file("/", all), machine_cache_file("/", some));
  some.threads = probe_cores().usable();
  EXPECT_EQ(machine_cache_file("/", all), machine_cache_file("/", some));
}

TEST(ThisMachine, SaysThatItCouldNotBeKept) {
  Cache cache;
  cache.tree.write("cache", "a file where the folder should be");
  const Machine machine = cache.get();
  EXPECT_TRUE(validate(machine).ok());
  EXPECT_NE(machine.source.find("; not kept: cannot make the folder"), std::string::npos) << machine.source;
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// How a machine follows from samples: no clock is asked.
#include "profile/measurements.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace terrace {
namespace {

using namespace literals;

TierSamples tier(const char* spec, Bytes granularity, bool addressable) {
  TierSamples samples{parse_tier_spec(spec).value(), granularity, addressable, {}, {}, {2e-7, 1e-7, 9e-7}};
  if (addressable) {
    samples.read = {20e9, 10e9, 30e9};
    samples.write = {8e9, 9e9, 1e9};
  }
  return samples;
}

LinkSamples link(std::uint32_t from, std::uint32_t to) {
  return {TierId{from},
          TierId{to},
          {{1_KB, {1e-6, 3e-6, 2e-6}}, {1_MB, {1e-3, 5e-4, 2e-3}}},
          {0.5, 0.7, 0.6},
          {0.8, 0.7, 0.9},
          {0.9, 0.8, 0.7},
          3};
}

Measurements dram_and(std::vector<TierSamples> slow) {
  Measurements measured{"a source", {"a processor", 2, 1e11}, {tier("dram:1GiB", 64_B, true)}, {}};
  for (TierSamples& samples : slow) measured.tiers.push_back(std::move(samples));
  const auto count = static_cast<std::uint32_t>(measured.tiers.size());
  for (std::uint32_t from = 0; from < count; ++from) {
    for (std::uint32_t to = 0; to < count; ++to) {
      if (from != to) measured.links.push_back(link(from, to));
    }
  }
  return measured;
}

TEST(Median, IsTheMiddleOrTheMeanOfTheMiddleTwo) {
  EXPECT_DOUBLE_EQ(median(Samples{5}), 5);
  EXPECT_DOUBLE_EQ(median(Samples{9, 1, 5}), 5);
  EXPECT_DOUBLE_EQ(median(Samples{9, 1, 5, 2}), 3.5);
  EXPECT_DOUBLE_EQ(median(Samples{4, 1, 3, 2, 1000}), 3) << "one bad round does no harm";
  EXPECT_THROW(static_cast<void>(median(Samples{})), std::logic_error);
}

TEST(LowerQuartile, IsBelowThreeQuartersOfTheSamples) {
  EXPECT_DOUBLE_EQ(lower_quartile({5}), 5);
  EXPECT_DOUBLE_EQ(lower_quartile({9, 1, 5}), 1);
  EXPECT_DOUBLE_EQ(lower_quartile({9, 8, 5, 7, 6}), 6);
  EXPECT_THROW(static_cast<void>(lower_quartile({})), std::logic_error);
}

TEST(Assemble, TakesMediansAndSharesByThreads) {
  Measurements measured = dram_and({tier("emulated:1GiB,read=1GB/s,write=1GB/s", 64_B, true)});
  measured.links[0].by_threads = {{1, {1e9, 3e9, 2e9}, {0.9, 1.2, 0.8}, {0.5, 0.4, 0.6}},
                                  {2, {4e9, 5e9, 3e9}, {1.2, 1.3, 1.1}, {0, 0, 0}}};
  const Machine machine = assemble(measured);
  EXPECT_TRUE(validate(machine).ok());
  const std::vector<ThreadedRate> expected{{1, {2e9}, 1 - 0.9, 0.5}, {2, {4e9}, 0, 0.01}};
  EXPECT_EQ(machine.links[0].by_threads, expected);
  EXPECT_TRUE(machine.links[1].by_threads.empty());
}

TEST(Assemble, TakesMediansAndShares) {
  const Machine machine = assemble(dram_and({tier("emulated:1GiB,read=1GB/s,write=1GB/s", 64_B, true)}));
  ASSERT_TRUE(validate(machine).ok()) << validate(machine).error().message;
  EXPECT_EQ(machine.name, "this");
  EXPECT_EQ(machine.source, "a source");
  EXPECT_EQ(machine.compute, (Compute{"a processor", 2, 1e11}));
  EXPECT_EQ(machine.tiers[0].read, BytesPerSecond{20e9});
  EXPECT_EQ(machine.tiers[0].write, BytesPerSecond{8e9});
  EXPECT_EQ(machine.tiers[0].latency, Seconds{2e-7});
  EXPECT_EQ(machine.tiers[1].spec, "emulated:1GiB,read=1GB/s,write=1GB/s");
  ASSERT_EQ(machine.links.size(), 2U);
  const Link& forth = machine.links[0];
  EXPECT_DOUBLE_EQ(forth.time(1_KB).count(), 1e-6);
  EXPECT_DOUBLE_EQ(forth.time(1_MB).count(), 5e-4);
  EXPECT_DOUBLE_EQ(forth.both_ways, 0.6);
  EXPECT_DOUBLE_EQ(forth.compute_loss, 1 - 0.8);
  EXPECT_EQ(forth.threads, 3U);
  EXPECT_DOUBLE_EQ(forth.while_computing, 0.8);
}

TEST(Assemble, KeepsNoiseFromMakingNonsense) {
  Measurements measured = dram_and({tier("numa:1:1GiB", 64_B, true)});
  measured.links[0].both_ways = {1.2};
  measured.links[0].compute = {1.1};
  measured.links[0].while_computing = {1.3};
  measured.links[1].while_computing = {0};
  measured.links[1].both_ways = {0};
  measured.links[1].times = {{1_KB, {5e-6}}, {2_KB, {4e-6}}, {4_KB, {8e-6}}};
  const Machine machine = assemble(measured);
  ASSERT_TRUE(validate(machine).ok()) << validate(machine).error().message;
  EXPECT_EQ(machine.links[0].both_ways, 1);
  EXPECT_EQ(machine.links[0].compute_loss, 0);
  EXPECT_EQ(machine.links[0].while_computing, 1);
  EXPECT_GT(machine.links[1].while_computing, 0);
  EXPECT_GT(machine.links[1].both_ways, 0);
  EXPECT_DOUBLE_EQ(machine.links[1].time(2_KB).count(), 5e-6) << "more bytes never take less time";
  EXPECT_DOUBLE_EQ(machine.links[1].time(4_KB).count(), 8e-6);
}

TEST(Assemble, MakesRegionsOfMemoryWholePagesBesideBlocks) {
  const auto granularity = [](std::vector<TierSamples> slow) {
    return assemble(dram_and(std::move(slow))).tiers[0].granularity;
  };
  EXPECT_EQ(granularity({}), 64_B);
  EXPECT_EQ(granularity({tier("numa:1:1GiB", 64_B, true)}), 64_B);
  EXPECT_EQ(granularity({tier("file:/a:1GiB", 512_B, false)}), 4_KiB);
  EXPECT_EQ(granularity({tier("numa:1:1GiB", 64_B, true), tier("file:/a:1GiB", 8_KiB, false)}), 8_KiB);
}

TEST(Assemble, GivesABlockTierTheRatesOfItsLinks) {
  Measurements measured = dram_and({tier("file:/a:1GiB", 512_B, false)});
  measured.links[0].times = {{1_MB, {1e-3}}, {4_MB, {2e-3}}};
  measured.links[1].times = {{1_MB, {1e-3}}, {4_MB, {1e-3}}};
  const Machine machine = assemble(measured);
  ASSERT_TRUE(validate(machine).ok()) << validate(machine).error().message;
  EXPECT_DOUBLE_EQ(machine.tiers[1].write.value, 2e9);
  EXPECT_DOUBLE_EQ(machine.tiers[1].read.value, 4e9);
  EXPECT_EQ(machine.tiers[1].granularity, 512_B);
  EXPECT_FALSE(machine.tiers[1].addressable);
  measured.links.pop_back();
  EXPECT_THROW(static_cast<void>(assemble(measured)), std::logic_error);
}

TEST(Assemble, NamesTiersOfOneKindApart) {
  const Machine machine =
      assemble(dram_and({tier("file:/a:1GiB", 512_B, false), tier("dram:1GiB", 64_B, true),
                         tier("file:/b:1GiB", 512_B, false)}));
  EXPECT_EQ(machine.tiers[1].name, "file");
  EXPECT_EQ(machine.tiers[2].name, "dram2");
  EXPECT_EQ(machine.tiers[3].name, "file2");
}

TEST(Assemble, RoundsCapacitiesToWholeRegions) {
  Measurements measured = dram_and({tier("file:/a:1000000B", 512_B, false)});
  measured.tiers[0].spec.capacity = 1'000'000_B;
  const Machine machine = assemble(measured);
  EXPECT_EQ(machine.tiers[0].capacity, 999'424_B);
  EXPECT_EQ(machine.tiers[1].capacity, 999'936_B);
}

}  // namespace
}  // namespace terrace

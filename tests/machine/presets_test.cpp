// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "terrace/machine.hpp"

namespace terrace {
namespace {

using namespace literals;

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const MachineInfo& info : machine_presets()) found.push_back(info.name);
  return found;
}

class Preset : public testing::TestWithParam<std::string> {};

/// A disk behind the host's memory has links with that alone.
bool has_link(const std::string& preset, std::uint32_t from, std::uint32_t to) {
  if (preset != "h200-pcie5-disk") return from != to;
  return from + 1 == to || to + 1 == from;
}

TEST_P(Preset, IsAMachineWithALinkBetweenAnyTwoTiers) {
  const Machine machine = machine_preset(GetParam()).value();
  const auto valid = validate(machine);
  ASSERT_TRUE(valid.ok()) << valid.error().message;
  EXPECT_EQ(machine.name, GetParam());
  EXPECT_FALSE(machine.source.empty());
  EXPECT_FALSE(machine.compute.name.empty());
  for (std::uint32_t from = 0; from < machine.tiers.size(); ++from) {
    for (std::uint32_t to = 0; to < machine.tiers.size(); ++to)
      EXPECT_EQ(machine.link(TierId{from}, TierId{to}) != nullptr, has_link(GetParam(), from, to));
  }
}

TEST_P(Preset, ReadsBackAsWritten) {
  const Machine machine = machine_preset(GetParam()).value();
  EXPECT_EQ(machine_from_json(to_json(machine)).value(), machine);
}

TEST_P(Preset, TakesLongerForMore) {
  const Machine machine = machine_preset(GetParam()).value();
  for (const Link& link : machine.links) {
    Seconds before{0};
    for (Bytes size = 1_KiB; size <= 4_GiB; size = 2 * size) {
      EXPECT_GT(link.time(size), before) << to_string(size);
      before = link.time(size);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Preset, testing::ValuesIn(names()), [](const auto& name) {
  std::string word = name.param;
  std::replace(word.begin(), word.end(), '-', '_');
  return word;
});

TEST(Presets, AreThePapersMachines) {
  EXPECT_EQ(names(), (std::vector<std::string>{"optane-autotm", "optane-cachedarrays", "optane-sentinel",
                                               "optane-deeptm", "optane-hmann", "optane-4tier",
                                               "optane-4tier-loaded", "numa-sentinel", "v100-pcie3",
                                               "rtx2080ti", "h200-pcie5", "h200-pcie5-disk"}));
}

TEST(Presets, HaveThePapersFigures) {
  const Machine autotm = machine_preset("optane-autotm").value();
  EXPECT_EQ(autotm.tiers[0].capacity, 192_GB);
  EXPECT_EQ(autotm.tiers[1].read, BytesPerSecond{39e9});
  EXPECT_LT(autotm.tiers[1].write, BytesPerSecond{13e9}) << "kernels' stores are not streaming ones";
  EXPECT_LT(*autotm.tiers[1].tiled_write, autotm.tiers[1].write);
  EXPECT_DOUBLE_EQ(autotm.links[0].time(13_GB).count(), 1) << "copies are limited by what Optane writes";
  EXPECT_DOUBLE_EQ(autotm.links[1].time(39_GB).count(), 1);
  const Machine deeptm = machine_preset("optane-deeptm").value();
  EXPECT_DOUBLE_EQ(deeptm.links[0].time(4_KiB).count(), 14.49e-6);
  EXPECT_DOUBLE_EQ(deeptm.links[1].time(4_KiB).count(), 5.57e-6);
  const Machine hmann = machine_preset("optane-hmann").value();
  EXPECT_EQ(hmann.tiers[0].capacity, 96_GB);
  EXPECT_EQ(hmann.tiers[1].capacity, 1500_GB);
  const Machine four = machine_preset("optane-4tier").value();
  EXPECT_DOUBLE_EQ(four.link(TierId{0}, TierId{3})->time(1_GB).count(), 1);
  const Machine h200 = machine_preset("h200-pcie5").value();
  EXPECT_FALSE(h200.tiers[1].addressable);
  EXPECT_DOUBLE_EQ(h200.links[0].time(1_MiB).count(), 1048576 / 47e9);
}

TEST(Presets, SuggestTheClosestName) {
  EXPECT_EQ(machine_preset("optane-autotn").error().message,
            "there is no machine 'optane-autotn': did you mean optane-autotm?");
  const std::string message = machine_preset("cray").error().message;
  EXPECT_TRUE(message.starts_with("there is no machine 'cray': there are optane-autotm, ")) << message;
  EXPECT_TRUE(message.ends_with("h200-pcie5 and h200-pcie5-disk")) << message;
}

}  // namespace
}  // namespace terrace

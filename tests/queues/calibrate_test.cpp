// SPDX-License-Identifier: Apache-2.0
// A device is calibrated as a machine. That it works is tested here, not how well it measures.
#include "profile/calibrate_device.hpp"

#include <gtest/gtest.h>

#include "tiers/cuda.hpp"
#include "tiers/fake_device.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace {
namespace {
using namespace literals;

DeviceCalibrateOptions quick(const std::shared_ptr<FakeDevice>& fake) {
  DeviceCalibrateOptions options;
  options.fast = parse_tier_spec("fake:8GiB,device").value();
  options.slow = {parse_tier_spec("pinned:4GiB").value()};
  options.sizes = {64_KiB, 256_KiB};
  options.rounds = 1;
  options.round = Seconds{1e-4};
  options.open = [fake](const TierSpec& spec) -> Result<std::unique_ptr<Tier>> {
    if (spec.on_device) return open_fake_device_tier(spec, fake);
    if (spec.kind == TierKind::pinned) return make_pinned_for(fake, spec.capacity);
    return open_tier(spec);
  };
  return options;
}

TEST(CalibrateDevice, MeasuresADeviceAndPinnedMemory) {
  const auto fake = std::make_shared<FakeDevice>(FakeDevice::Schedule::eager);
  DeviceCalibrateOptions options = quick(fake);
  std::vector<double> shares;
  options.progress = [&](std::string_view, double share) { shares.push_back(share); };
  const Machine machine = calibrate_device(options).value();
  ASSERT_TRUE(validate(machine));
  ASSERT_EQ(machine.tiers.size(), 2u);
  EXPECT_TRUE(machine.tiers[0].addressable);
  EXPECT_FALSE(machine.tiers[1].addressable) << "kernels use the device's memory alone";
  EXPECT_EQ(machine.tiers[0].capacity, 8_GiB) << "of which little was opened";
  EXPECT_EQ(machine.tiers[0].granularity, 256_B);
  EXPECT_EQ(machine.tiers[1].granularity, 256_B) << "so that neighbours travel as one";
  EXPECT_GT(machine.compute.flops_per_second, 0);
  EXPECT_EQ(machine.links.size(), 2u);
  for (const Link& link : machine.links) EXPECT_EQ(link.rates.size(), 2u);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(fake->violations(), std::vector<std::string>{}) << "measuring is in order, too";
  EXPECT_EQ(machine_from_json(to_json(machine)).value(), machine);
}

TEST(CalibrateDevice, ADiskBehindMakesRegionsWholePages) {
  const TemporaryFolder folder;
  DeviceCalibrateOptions options = quick(std::make_shared<FakeDevice>(FakeDevice::Schedule::eager));
  options.slow.push_back(parse_tier_spec("file:" + (folder / "spill") + ":1GiB,buffered").value());
  const Machine machine = calibrate_device(options).value();
  ASSERT_TRUE(validate(machine));
  EXPECT_EQ(machine.links.size(), 6u);
  EXPECT_EQ(machine.tiers[0].granularity, 4_KiB);
  EXPECT_EQ(machine.tiers[1].granularity, 4_KiB);
  EXPECT_TRUE(folder.empty()) << "nothing stays";
}

TEST(CalibrateDevice, RefusesATierThatIsOnNoDevice) {
  DeviceCalibrateOptions options = quick(std::make_shared<FakeDevice>(FakeDevice::Schedule::eager));
  options.fast = parse_tier_spec("dram:1GiB").value();
  const auto machine = calibrate_device(options);
  ASSERT_FALSE(machine);
  EXPECT_NE(machine.error().message.find("lies on no device"), std::string::npos) << machine.error().message;
}

TEST(CalibrateDevice, WithoutAGpuOneSentenceSaysWhatToDo) {
  if (open_cuda_device(0)) GTEST_SKIP() << "there is a GPU";
  DeviceCalibrateOptions options;
  options.fast = parse_tier_spec("cuda:0:8GiB").value();
  const auto machine = calibrate_device(options);
  ASSERT_FALSE(machine);
  EXPECT_TRUE(machine.error().message.starts_with("cuda:0:")) << machine.error().message;
}

}  // namespace
}  // namespace terrace

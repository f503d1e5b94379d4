// SPDX-License-Identifier: Apache-2.0
// Tiers on devices are opened within budgets: what does not fit is refused before the first step, with the
// tier and the missing bytes; what is not there, with what to do.
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/cuda_driver.hpp"
#include "queues/rig.hpp"
#include "tiers/device_tier.hpp"

namespace terrace {
namespace {
using namespace literals;

Machine gpu_machine(const std::string& fast, const std::string& slow) {
  Machine machine = device_machine({"pinned"});
  machine.tiers[0].spec = fast;
  machine.tiers[1].spec = slow;
  return machine;
}

/// Why the tiers were not opened.
std::string refusal(const Machine& machine, std::vector<Bytes> budget, Bytes free_on_gpu) {
  const std::string user = "resnet50";
  const auto nothing = [](const TierSpec&) -> Result<std::unique_ptr<Tier>> {
    ADD_FAILURE() << "nothing is opened";
    return Error{ErrorCode::unsupported, "opened"};
  };
  const auto opened = OpenTiers::open({user, machine, budget, nothing, KernelsOn::device,
                                       [&](unsigned) -> Result<Bytes> { return free_on_gpu; }});
  return opened ? "" : opened.error().message;
}

TEST(DeviceBudget, AGpuThatIsFullIsNamedWithTheMissingBytes) {
  const std::string sentence =
      refusal(gpu_machine("cuda:0:100GiB", "pinned:64GiB"), {100_GiB, 4_KiB}, 60_GiB);
  EXPECT_NE(sentence.find("resnet50 needs 100"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("cuda:0"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("40.00 GiB too little"), std::string::npos) << sentence;
}

TEST(DeviceBudget, TwoTiersOfOneGpuCountTogether) {
  Machine machine = device_machine({"device", "pinned"});
  machine.tiers[0].spec = machine.tiers[1].spec = "cuda:1:100GiB";
  const std::string sentence = refusal(machine, {40_GiB, 40_GiB, 4_KiB}, 60_GiB);
  EXPECT_NE(sentence.find("20.00 GiB too little"), std::string::npos) << sentence;
}

TEST(DeviceBudget, PinnedMemoryCountsAgainstTheHosts) {
  const std::string sentence =
      refusal(gpu_machine("cuda:0:1GiB", "pinned:900TiB"), {1_GiB, Bytes{900ULL << 40U}}, 60_GiB);
  EXPECT_NE(sentence.find("of memory"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("pinned1 900"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("too little"), std::string::npos) << sentence;
}

TEST(DeviceBudget, MemoryOfAGpuIsNotTheHosts) {
  // More than this computer has: refused by the GPU alone.
  const std::string sentence =
      refusal(gpu_machine("cuda:0:900TiB", "pinned:1MiB"), {Bytes{900ULL << 40U}, 4_KiB}, 1_GiB);
  EXPECT_NE(sentence.find("cuda:0"), std::string::npos) << sentence;
}

TEST(DeviceBudget, KernelsOfTheHostDoNotUseADevice) {
  const std::string user = "a test";
  const Machine machine = device_machine({"pinned"});
  const auto fake = std::make_shared<FakeDevice>(Schedule::eager);
  const auto opened = OpenTiers::open({user, machine, {64_KiB, Bytes{}}, [&](const TierSpec& spec) {
                                         return open_fake_device_tier(spec, fake);
                                       }});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("device0"), std::string::npos) << opened.error().message;
}

TEST(DeviceBudget, APlanRunsOnOneDevice) {
  const std::string user = "a test";
  const Machine machine = device_machine({"device"});
  const auto opened = OpenTiers::open({user,
                                       machine,
                                       {64_KiB, 64_KiB},
                                       [](const TierSpec& spec) { return open_tier(spec); },
                                       KernelsOn::device});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("one device"), std::string::npos) << opened.error().message;
}

TEST(DeviceBudget, PinningThatIsRefusedIsReported) {
  const auto fake = std::make_shared<FakeDevice>(Schedule::eager);
  fake->fail_call(1);
  try {
    make_pinned_for(fake, 64_KiB);
    FAIL() << "the pin was refused";
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("pinning on " + fake->name()), std::string::npos)
        << error.what();
  }
}

TEST(DeviceBudget, WithoutAGpuOneSentenceSaysWhatToDo) {
  if (open_cuda_device(0)) GTEST_SKIP() << "there is a GPU";
  for (const char* spec : {"cuda:0:1MiB", "pinned:1MiB"}) {
    const auto tier = open_tier(spec);
    ASSERT_FALSE(tier);
    EXPECT_EQ(tier.error().code, ErrorCode::unsupported);
    EXPECT_TRUE(tier.error().message.starts_with(spec)) << tier.error().message;
  }
  const std::string user = "a test";
  const auto opened = OpenTiers::open(
      {user, gpu_machine("cuda:0:1MiB", "pinned:1MiB"), {64_KiB, 64_KiB}, {}, KernelsOn::device});
  ASSERT_FALSE(opened);
  EXPECT_TRUE(opened.error().message.starts_with("a test: ")) << opened.error().message;
}

// Run by the test below in a process of its own, where the driver is another one.
TEST(OldDriver, SaysWhatItIs) {
  if (std::getenv("TERRACE_MEETS_OLD_DRIVER") == nullptr) GTEST_SKIP() << "part of the next test";
  std::printf("%s\n", open_cuda_device(0).error().message.c_str());
}

TEST(OldDriver, IsRefusedWithOneSentence) {
  if (!built_with_cuda()) GTEST_SKIP() << "built without CUDA";
  if (!std::filesystem::exists(TERRACE_OLD_DRIVER)) GTEST_SKIP() << "this program was taken elsewhere";
  const std::string command = "TERRACE_MEETS_OLD_DRIVER=1 LD_LIBRARY_PATH=" TERRACE_OLD_DRIVER " " +
                              std::filesystem::read_symlink("/proc/self/exe").string() +
                              " --gtest_filter=OldDriver.SaysWhatItIs";
  FILE* const child = popen(command.c_str(), "r");
  ASSERT_NE(child, nullptr);
  std::string said;
  for (char line[512]; std::fgets(line, sizeof line, child) != nullptr;) said += line;
  EXPECT_EQ(pclose(child), 0);
  EXPECT_NE(
      said.find("the NVIDIA driver is too old: it knows CUDA 10.1, and 11.2 or newer is needed; update it"),
      std::string::npos)
      << said;
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "base/memory_limit.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tiers/temporary_folder.hpp"

namespace terrace {
namespace {
using namespace literals;
namespace fs = std::filesystem;

// A computer made of files.
class MemoryLimitTest : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) {
    const fs::path path = root_.path() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  Bytes available() const { return memory_limit(root_.path()).available; }

  TemporaryFolder root_;
};

TEST_F(MemoryLimitTest, IsWhatTheKernelCallsAvailable) {
  put("proc/meminfo", "MemTotal:  100 kB\nMemFree:  10 kB\nMemAvailable:   50 kB\n");
  EXPECT_EQ(available(), 50_KiB);
  EXPECT_EQ(memory_limit(root_.path()).source, "MemAvailable");
}

TEST_F(MemoryLimitTest, IsLoweredByAVersion2GroupWithoutItsPageCache) {
  put("proc/meminfo", "MemAvailable: 1000 kB\n");
  put("proc/self/cgroup", "0::/job\n");
  put("sys/fs/cgroup/job/memory.max", "409600\n");
  put("sys/fs/cgroup/job/memory.current", "204800\n");
  EXPECT_EQ(available(), 200_KiB);
  put("sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 51200\nactive_file 51200\n");
  EXPECT_EQ(available(), 300_KiB);
  EXPECT_NE(memory_limit(root_.path()).source.find("cgroup/job"), std::string::npos);
}

TEST_F(MemoryLimitTest, IsLoweredByAGroupFurtherUp) {
  put("proc/meminfo", "MemAvailable: 1000 kB\n");
  put("proc/self/cgroup", "0::/slice/job\n");
  put("sys/fs/cgroup/slice/memory.max", "102400\n");
  put("sys/fs/cgroup/slice/memory.current", "0\n");
  put("sys/fs/cgroup/slice/job/memory.max", "max\n");
  put("sys/fs/cgroup/slice/job/memory.current", "0\n");
  EXPECT_EQ(available(), 100_KiB);
}

TEST_F(MemoryLimitTest, IsLoweredByAVersion1Group) {
  put("proc/meminfo", "MemAvailable: 1000 kB\n");
  put("proc/self/cgroup", "5:cpu,cpuacct:/other\n4:hugetlb,memory:/job\n0::/\n");
  put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "102400\n");
  put("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "51200\n");
  put("sys/fs/cgroup/memory/job/memory.stat", "total_inactive_file 10240\ntotal_active_file 0\n");
  EXPECT_EQ(available(), 60_KiB);
}

TEST_F(MemoryLimitTest, FindsTheContainersLimitAtTheRootOfTheMount) {
  put("proc/self/cgroup", "4:memory:/docker/only-the-host-sees-this\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "102400\n");
  put("sys/fs/cgroup/memory/memory.usage_in_bytes", "0\n");
  EXPECT_EQ(available(), 100_KiB);
}

TEST_F(MemoryLimitTest, IsZeroWhereAGroupIsOverItsLimit) {
  put("proc/self/cgroup", "0::/job\n");
  put("sys/fs/cgroup/job/memory.max", "1000\n");
  put("sys/fs/cgroup/job/memory.current", "2000\n");
  EXPECT_EQ(available(), 0_B);
}

TEST_F(MemoryLimitTest, IsAbsentWhereNothingCanBeRead) { EXPECT_GT(available(), 1024_TiB); }

TEST_F(MemoryLimitTest, OfANodeCountsItsPageCache) {
  put("sys/devices/system/node/node3/meminfo",
      "Node 3 MemTotal: 1000 kB\nNode 3 MemFree: 100 kB\nNode 3 Active(file): 20 kB\nNode 3 Inactive(file): "
      "3 kB\n");
  EXPECT_EQ(memory_on_node(3, root_.path()), 123_KiB);
  EXPECT_EQ(memory_on_node(4, root_.path()), 0_B);
}

TEST_F(MemoryLimitTest, PeakIsWhatTheKernelSawResident) {
  EXPECT_EQ(peak_resident(root_.path()), 0_B);
  put("proc/self/status", "Name:\tx\nVmPeak:\t  900 kB\nVmHWM:\t  300 kB\nVmRSS:\t  200 kB\n");
  EXPECT_EQ(peak_resident(root_.path()), 300_KiB);
  EXPECT_GT(peak_resident(), 1_MiB);
}

TEST_F(MemoryLimitTest, PeakOfAGroupIsThatOfTheInnermostThatSays) {
  EXPECT_FALSE(peak_of_group(root_.path()));
  put("proc/self/cgroup", "4:memory:/outer/inner\n0::/\n");
  put("sys/fs/cgroup/memory/memory.max_usage_in_bytes", "900\n");
  EXPECT_FALSE(peak_of_group(root_.path())) << "the root is everybody's";
  put("sys/fs/cgroup/memory/outer/memory.max_usage_in_bytes", "800\n");
  EXPECT_EQ(peak_of_group(root_.path()), 800_B);
  put("sys/fs/cgroup/memory/outer/inner/memory.max_usage_in_bytes", "700\n");
  EXPECT_EQ(peak_of_group(root_.path()), 700_B);
  put("proc/self/cgroup", "0::/job\n");
  put("sys/fs/cgroup/job/memory.peak", "600\n");
  EXPECT_EQ(peak_of_group(root_.path()), 600_B);
}

TEST(MemoryLimitHere, IsLessThanTheComputerHas) {
  const MemoryLimit limit = memory_limit();
  EXPECT_GT(limit.available, 16_MiB);
  EXPECT_LT(limit.available, 1024_TiB);
}

}  // namespace
}  // namespace terrace

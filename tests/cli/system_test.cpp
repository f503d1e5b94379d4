// SPDX-License-Identifier: Apache-2.0
// The probes, on computers made of files and on this one.
#include "base/system.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "cli/temporary_tree.hpp"

namespace terrace {
namespace {

using namespace literals;
using test::TemporaryTree;

TEST(Cores, CountsListsOfRanges) {
  TemporaryTree computer;
  computer.write("sys/devices/system/cpu/online", "0-3,8,10-11\n");
  EXPECT_EQ(probe_cores(computer.path()).online, 7U);
}

TEST(Cores, KnowsNoQuotaWhereNoneIsSet) {
  TemporaryTree computer;
  computer.write("proc/self/cgroup", "0::/user\n");
  computer.write("sys/fs/cgroup/user/cpu.max", "max 100000\n");
  EXPECT_EQ(probe_cores(computer.path()).quota, std::nullopt);
}

TEST(Cores, TakesTheLeastQuotaOfAllGroupsAround) {
  TemporaryTree computer;
  computer.write("proc/self/cgroup", "0::/outer/inner\n");
  computer.write("sys/fs/cgroup/outer/cpu.max", "150000 100000\n");
  computer.write("sys/fs/cgroup/outer/inner/cpu.max", "800000 100000\n");
  EXPECT_EQ(probe_cores(computer.path()).quota, 1.5);
}

TEST(Cores, ReadsTheFirstVersionOfControlGroups) {
  TemporaryTree computer;
  computer.write("proc/self/cgroup", "5:memory:/job\n4:cpu,cpuacct:/job\n3:cpuset:/\n");
  computer.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n");
  computer.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  computer.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  computer.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(probe_cores(computer.path()).quota, 2.5);
}

TEST(Cores, FindsTheLimitOfAContainerThatCannotSeeItsOwnGroup) {
  TemporaryTree computer;
  computer.write("proc/self/cgroup", "1:cpu:/docker/0123\n");
  computer.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
  computer.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(probe_cores(computer.path()).quota, 0.5);
}

TEST(Cores, AreUsableAsFarAsAffinityAndQuotaAllow) {
  EXPECT_EQ((Cores{8, 8, std::nullopt}.usable()), 8U);
  EXPECT_EQ((Cores{8, 4, std::nullopt}.usable()), 4U);
  EXPECT_EQ((Cores{8, 4, 2.9}.usable()), 2U);
  EXPECT_EQ((Cores{8, 8, 0.5}.usable()), 1U);
  EXPECT_EQ((Cores{8, 4, 6.0}.usable()), 4U);
}

TEST(Cores, SeeTheAffinityOfThisProcess) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &before) && CPU_COUNT(&one) == 0) CPU_SET(core, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(probe_cores().allowed, 1U);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(probe_cores().allowed, static_cast<unsigned>(CPU_COUNT(&before)));
}

TEST(Memory, IsReadInBytes) {
  TemporaryTree computer;
  computer.write("proc/meminfo", "MemTotal:  1048576 kB\nMemFree:  1 kB\nMemAvailable:   524288 kB\n");
  const MemoryAmounts memory = probe_memory(computer.path());
  EXPECT_EQ(memory.total, 1_GiB);
  EXPECT_EQ(memory.available, 512_MiB);
}

TEST(NumaNodes, ComeInOrderWithTheirMemoryAndCores) {
  TemporaryTree computer;
  const std::string folder = "sys/devices/system/node/";
  for (const int node : {10, 2, 0}) {
    computer.write(folder + "node" + std::to_string(node) + "/meminfo",
                   "Node " + std::to_string(node) + " MemTotal: " + std::to_string(node + 1) + " kB\n");
    computer.write(folder + "node" + std::to_string(node) + "/cpulist", node == 10 ? "\n" : "0-3\n");
  }
  computer.write(folder + "online", "0,2,10\n");
  const auto nodes = probe_numa_nodes(computer.path());
  ASSERT_EQ(nodes.size(), 3U);
  EXPECT_EQ(nodes[0].node, 0U);
  EXPECT_EQ(nodes[1].node, 2U);
  EXPECT_EQ(nodes[2].node, 10U);
  EXPECT_EQ(nodes[1].memory, 3_KiB);
  EXPECT_EQ(nodes[1].cores, 4U);
  EXPECT_EQ(nodes[2].cores, 0U);
}

TEST(HugePages, AreReadFromTheChosenWordAndThePool) {
  TemporaryTree computer;
  computer.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  computer.write("proc/meminfo", "HugePages_Total:  16\nHugePages_Free:  7\nHugepagesize:  2048 kB\n");
  const HugePages pages = probe_huge_pages(computer.path());
  EXPECT_EQ(pages.transparent, "madvise");
  EXPECT_EQ(pages.pool_total, 16U);
  EXPECT_EQ(pages.pool_free, 7U);
  EXPECT_EQ(pages.page, 2_MiB);
}

TEST(Dax, FindsDevicesAndMountsButNothingThatOnlySoundsLikeIt) {
  TemporaryTree computer;
  computer.write("dev/dax0.0", "");
  computer.write("dev/daxy", "");
  computer.write("proc/self/mounts",
                 "/dev/pmem0 /mnt/pmem ext4 rw,relatime,dax=always 0 0\n"
                 "/dev/pmem1 /mnt/old xfs rw,dax 0 0\n"
                 "/dev/pmem2 /mnt/off ext4 rw,dax=never 0 0\n"
                 "/dev/dax /dax ext4 rw 0 0\n");
  const DaxPlaces places = probe_dax(computer.path());
  EXPECT_EQ(places.devices, std::vector<std::string>{"/dev/dax0.0"});
  EXPECT_EQ(places.mounts, (std::vector<std::string>{"/mnt/pmem", "/mnt/old"}));
}

TEST(Gpus, AreTheNumberedDevices) {
  TemporaryTree computer;
  computer.write("dev/nvidia0", "");
  computer.write("dev/nvidiactl", "");
  EXPECT_EQ(probe_gpus(computer.path()), std::vector<std::string>{"/dev/nvidia0"});
}

TEST(Probes, FindNothingOnAnEmptyComputer) {
  TemporaryTree computer;
  EXPECT_EQ(probe_cores(computer.path()).online, 0U);
  EXPECT_EQ(probe_memory(computer.path()).total, 0_B);
  EXPECT_TRUE(probe_numa_nodes(computer.path()).empty());
  EXPECT_EQ(probe_huge_pages(computer.path()).transparent, "");
  EXPECT_TRUE(probe_dax(computer.path()).devices.empty());
  EXPECT_TRUE(probe_gpus(computer.path()).empty());
}

TEST(Probes, AgreeWithTheSystemOnThisComputer) {
  EXPECT_EQ(probe_cores().online, static_cast<unsigned>(sysconf(_SC_NPROCESSORS_ONLN)));
  EXPECT_EQ(probe_memory().total.count, static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                                            static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
}

TEST(InstructionSets, AreConsistent) {
  const InstructionSets sets = probe_instruction_sets();
  EXPECT_TRUE(sets.avx2 || !sets.avx512f);
  EXPECT_TRUE(sets.amx_advertised || !sets.amx_works);
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// What is made of the facts.
#include "machine/checkup.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace terrace {
namespace {

using namespace literals;

// Everything one could wish for.
Computer good_computer() {
  Computer computer;
  computer.cores = {8, 8, std::nullopt};
  computer.instructions = {true, true, true, true, true, true};
  computer.memory = {64_GiB, 60_GiB};
  computer.usable_memory = {60_GiB, "MemAvailable"};
  computer.nodes = {{0, 64_GiB, 8}};
  computer.numa_built = true;
  computer.kernels_built = true;
  computer.huge_pages = {"madvise", 2_MiB, 0, 0};
  computer.uring = {true, 0};
  computer.folder = "/data";
  computer.storage = StorageFeatures{500_GiB, false, 0, true};
  computer.disk = DiskSpeed{256_MiB, {2e9}, {3e9}};
  computer.dax = {{"/dev/dax0.0"}, {"/mnt/pmem"}};
  return computer;
}

Check check_of(const Computer& computer, std::string_view name) {
  for (const Check& check : check_up(computer)) {
    if (check.name == name) return check;
  }
  ADD_FAILURE() << "there is no check " << name;
  return {};
}

void expect(const Computer& computer, std::string_view name, CheckStatus status, std::string_view found) {
  const Check check = check_of(computer, name);
  EXPECT_EQ(to_string(check.status), to_string(status)) << name;
  EXPECT_NE(check.found.find(found), std::string::npos) << check.found;
  EXPECT_EQ(check.advice.empty(), status == CheckStatus::ok) << name;
}

TEST(Checkup, FindsAGoodComputerGood) {
  for (const Check& check : check_up(good_computer())) {
    const CheckStatus expected = check.name == "gpu" ? CheckStatus::missing : CheckStatus::ok;
    EXPECT_EQ(check.status, expected) << check.name << ": " << check.found;
  }
}

TEST(Checkup, SaysWhatKeepsCoresAway) {
  Computer computer = good_computer();
  computer.cores.allowed = 2;
  expect(computer, "cores", CheckStatus::limited, "2 of 8 cores by the affinity");
  computer.cores = {8, 8, 1.5};
  expect(computer, "cores", CheckStatus::limited, "1 of 8 cores: the control group gives 1.50");
}

TEST(Checkup, DistrustsAmxThatFaults) {
  Computer computer = good_computer();
  expect(computer, "instructions", CheckStatus::ok, "amx");
  computer.instructions.amx_works = false;
  expect(computer, "instructions", CheckStatus::limited, "amx is advertised but faults");
  computer.instructions = {};
  expect(computer, "instructions", CheckStatus::limited, "none");
}

TEST(Checkup, NamesTheGroupThatLimitsMemory) {
  Computer computer = good_computer();
  computer.usable_memory = {2_GiB, "/sys/fs/cgroup/job"};
  expect(computer, "memory", CheckStatus::limited, "/sys/fs/cgroup/job leaves 2.00 GiB");
}

TEST(Checkup, TakesNoGroupForOneWhereOnlyTheReadingsDiffer) {
  Computer computer = good_computer();
  computer.usable_memory = {59_GiB, "MemAvailable"};
  expect(computer, "memory", CheckStatus::ok, "60.00 GiB available");
}

TEST(Checkup, TellsAMissingNodeFromAMissingLibrary) {
  Computer computer = good_computer();
  computer.numa_built = false;
  expect(computer, "numa", CheckStatus::limited, "no libnuma");
  computer.nodes.clear();
  expect(computer, "numa", CheckStatus::missing, "no nodes");
}

TEST(Checkup, SaysWhatKernelsAreMissingOrHeldBack) {
  Computer computer = good_computer();
  expect(computer, "kernels", CheckStatus::ok, "oneDNN");
  computer.instructions.amx_works = false;
  expect(computer, "kernels", CheckStatus::ok, "kept from AMX");
  computer.kernels_built = false;
  expect(computer, "kernels", CheckStatus::missing, "no oneDNN");
}

TEST(Checkup, AcceptsReservedHugePagesForWantOfTransparentOnes) {
  Computer computer = good_computer();
  computer.huge_pages = {"never", 2_MiB, 8, 8};
  expect(computer, "huge_pages", CheckStatus::limited, "8 of 8");
  computer.huge_pages = {"never", 2_MiB, 0, 0};
  expect(computer, "huge_pages", CheckStatus::missing, "never");
}

TEST(Checkup, AdvisesByTheReasonWhyIoUringIsMissing) {
  Computer computer = good_computer();
  computer.uring = {false, 0};
  EXPECT_NE(check_of(computer, "io_uring").advice.find("liburing-dev"), std::string::npos);
  computer.uring = {true, EPERM};
  EXPECT_NE(check_of(computer, "io_uring").advice.find("io_uring_disabled"), std::string::npos);
  computer.uring = {true, ENOSYS};
  EXPECT_NE(check_of(computer, "io_uring").advice.find("Linux 5.6"), std::string::npos);
  expect(computer, "io_uring", CheckStatus::missing, "Function not implemented");
}

TEST(Checkup, WantsRoomForLockedMemory) {
  Computer computer = good_computer();
  computer.memlock = 8_MiB;
  expect(computer, "memlock", CheckStatus::limited, "8.00 MiB");
  computer.memlock = 1_GiB;
  expect(computer, "memlock", CheckStatus::ok, "1.00 GiB");
}

TEST(Checkup, JudgesTheDisk) {
  Computer computer = good_computer();
  expect(computer, "disk", CheckStatus::ok, "3.00 GB/s read, 2.00 GB/s write");
  computer.storage = StorageFeatures{500_GiB, true, 0, false};
  expect(computer, "direct_io", CheckStatus::limited, "memory");
  expect(computer, "disk", CheckStatus::limited, "3.00 GB/s");
  expect(computer, "map_sync", CheckStatus::missing, "/data");
  computer.storage = StorageFeatures{500_GiB, false, EINVAL, false};
  expect(computer, "direct_io", CheckStatus::missing, "Invalid argument");
  computer.storage = Error{ErrorCode::invalid_argument, "no such place"};
  computer.disk = Error{ErrorCode::invalid_argument, "no such place"};
  for (const char* name : {"direct_io", "disk"})
    expect(computer, name, CheckStatus::missing, "no such place");
}

TEST(Checkup, TellsDaxDevicesFromMounts) {
  Computer computer = good_computer();
  computer.dax.mounts.clear();
  expect(computer, "dax", CheckStatus::limited, "/dev/dax0.0");
  computer.dax.devices.clear();
  expect(computer, "dax", CheckStatus::missing, "no persistent");
}

TEST(Checkup, OwnsUpToNotUsingAGpu) {
  Computer computer = good_computer();
  expect(computer, "gpu", CheckStatus::missing, "built without CUDA");
  computer.gpus = {"/dev/nvidia0"};
  expect(computer, "gpu", CheckStatus::missing, "/dev/nvidia0 is not used");
  computer.cuda = Error{ErrorCode::unsupported, "the driver is too old (it says: no): update it"};
  expect(computer, "gpu", CheckStatus::missing, "the driver is too old (it says: no); /dev/nvidia0");
  computer.cuda = GpuList{"13.0", {{0, "NVIDIA H200", 139_GiB}}};
  expect(computer, "gpu", CheckStatus::ok, "0: NVIDIA H200 with 139.00 GiB; the driver knows CUDA 13.0");
}

}  // namespace
}  // namespace terrace

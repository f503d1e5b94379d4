// SPDX-License-Identifier: Apache-2.0
// A failing environment: full disks, killed processes, and systems that refuse rings, threads or pinned
// memory.
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cstddef>
#include <thread>

#include "mount.hpp"
#include "support.hpp"
#include "terrace/error.hpp"
#include "tiers/pool_queue.hpp"
#include "tiers/uring_queue.hpp"

namespace terrace {
namespace {
using namespace file_test;

constexpr std::size_t kMiB = 1 << 20;

bool works(BlockQueue& queue) {
  Memory written(kMiB), read(kMiB);
  written.randomise(12);
  return transfer(queue, Access::write, 0, written.span()) == std::int64_t{kMiB} &&
         transfer(queue, Access::read, 0, read.span()) == std::int64_t{kMiB} &&
         std::ranges::equal(written.span(), read.span());
}

// ---- Full disks

TEST(FullDisk, IsMetWhenTheTierIsOpened) {
  const Mount mount(Mount::Kind::disk);
  if (!mount.valid()) GTEST_SKIP() << mount.why();
  const auto tier = open_tier("file:" + mount / "spill" + ":64MiB");
  ASSERT_FALSE(tier);
  EXPECT_EQ(tier.error().code, ErrorCode::too_large);
  EXPECT_TRUE(mount.empty());
}

TEST(FullDisk, ReservedSpaceStaysWritable) {
  const Mount mount(Mount::Kind::disk);
  if (!mount.valid()) GTEST_SKIP() << mount.why();
  const auto tier = open_tier("file:" + mount / "spill" + ":4MiB").value();
  const int filler = open((mount / "filler").c_str(), O_CREAT | O_WRONLY, 0600);
  const Memory junk(kMiB);
  while (write(filler, junk.data(), kMiB) > 0) {
  }
  EXPECT_EQ(errno, ENOSPC);
  close(filler);
  EXPECT_TRUE(works(*tier->blocks()));
}

// Without the tier's reservation, the queues themselves must report what the disk says.
class FullDiskQueue : public ::testing::TestWithParam<bool> {};

TEST_P(FullDiskQueue, ReportsNoSpaceAtThatWrite) {
  const Mount mount(Mount::Kind::memory);
  if (!mount.valid()) GTEST_SKIP() << mount.why();
  BlockFile file;
  file.descriptor = open((mount / "sparse").c_str(), O_CREAT | O_RDWR, 0600);
  ASSERT_EQ(ftruncate(file.descriptor, 4 * kMiB), 0);
  file.capacity = 4_MiB;
  file.block_size = 4_KiB;
  file.memory_alignment = 64_B;
  file.request_size = 4_MiB;
  file.depth = 2;
  std::unique_ptr<BlockQueue> queue;
  if (GetParam()) {
    auto opened = open_uring_queue(file);
    if (!opened) GTEST_SKIP() << opened.error().message;
    queue = std::move(*opened);
  } else {
    queue = open_pool_queue(file, 1);
  }
  const Memory memory(4 * kMiB, std::byte{1});
  const std::int64_t done = transfer(*queue, Access::write, 0, memory.span());
  EXPECT_GT(done, 0);
  EXPECT_LE(done, std::int64_t{kMiB});
  EXPECT_EQ(transfer(*queue, Access::write, 2 * kMiB, memory.span().first(kMiB)), -ENOSPC);
  queue.reset();
  close(file.descriptor);
}
INSTANTIATE_TEST_SUITE_P(All, FullDiskQueue, ::testing::Bool(),
                         [](const auto& uring) { return uring.param ? "Uring" : "Pool"; });

// ---- A killed process

TEST(KilledProcess, LeavesNoFileAndGivesItsSpaceBack) {
  const Mount mount(Mount::Kind::disk);
  const TemporaryFolder folder;
  const std::string path = mount.valid() ? mount / "spill" : folder / "spill";
  const std::uint64_t free_before = mount.valid() ? mount.free_bytes() : 0;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto tier = open_tier("file:" + path + ":8MiB").value();
    const char answer = works(*tier->blocks()) ? 'y' : 'n';
    if (write(ready[1], &answer, 1) != 1) _exit(1);
    while (true) pause();
  }
  close(ready[1]);
  char answer = 0;
  EXPECT_EQ(read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  close(ready[0]);
  if (mount.valid()) {
    EXPECT_LE(mount.free_bytes() + 8 * kMiB, free_before);
  }
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(mount.valid() ? mount.empty() : folder.empty());
  // The kernel closes a dead process's ring a little later.
  for (int i = 0; i < 1000 && mount.valid() && mount.free_bytes() < free_before; ++i) poll(nullptr, 0, 10);
  EXPECT_EQ(mount.valid() ? mount.free_bytes() : 0, free_before);
}

// ---- A system that refuses

bool drop_capability(unsigned capability) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2];
  if (syscall(SYS_capget, &header, data) != 0) return false;
  for (auto* set : {&data[0].effective, &data[0].permitted, &data[0].inheritable})
    *set &= ~(1u << capability);
  return syscall(SYS_capset, &header, data) == 0;
}

TEST(RefusedPinning, LeavesEverythingWorking) {
  const TemporaryFolder folder;
  const int status = in_child([&] {
    const rlimit little{64 << 10, 64 << 10};
    if (setrlimit(RLIMIT_MEMLOCK, &little) != 0 || !drop_capability(CAP_IPC_LOCK)) return 77;
    const auto tier = open_tier("file:" + (folder / "spill") + ":4MiB").value();
    if (!tier->description().note.empty()) return 77;
    const Memory memory(kMiB, std::byte{5}), read(kMiB);
    if (tier->blocks()->register_memory(memory.span())) return 1;
    if (transfer(*tier->blocks(), Access::write, 0, memory.span()) != std::int64_t{kMiB}) return 2;
    if (transfer(*tier->blocks(), Access::read, 0, read.span()) != std::int64_t{kMiB}) return 3;
    return all(read.span(), std::byte{5}) ? 0 : 4;
  });
  if (status == 77) GTEST_SKIP() << "limits cannot be lowered here, or there is no io_uring";
  EXPECT_EQ(status, 0);
}

// Makes a system call fail with EPERM from here on, as containers do.
bool forbid(unsigned call) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{4, code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(RefusedRing, ThreadsDoTheWorkAndTheNoteSaysWhy) {
  const TemporaryFolder folder;
  const int status = in_child([&] {
    if (!forbid(SYS_io_uring_setup)) return 77;
    const auto tier = open_tier("file:" + (folder / "spill") + ":4MiB").value();
    if (tier->description().note.find("io_uring") == std::string::npos) return 1;
    return works(*tier->blocks()) ? 0 : 2;
  });
  if (status == 77) GTEST_SKIP() << "system calls cannot be filtered here";
  EXPECT_EQ(status, 0);
}

// Runs `body` as a user who may have `processes` processes, the current one included.
int with_process_limit(rlim_t processes, const std::function<int()>& body) {
  return in_child([&] {
    const rlimit limit{processes, processes};
    if (setrlimit(RLIMIT_NPROC, &limit) != 0 || setresuid(54322, 54322, 54322) != 0) return 77;
    return body();
  });
}

TEST(RefusedThreads, FewerDoTheWorkButNoneIsAnError) {
  const TemporaryFolder folder;
  BlockFile file;
  file.descriptor = open((folder / "data").c_str(), O_CREAT | O_RDWR, 0600);
  ASSERT_EQ(ftruncate(file.descriptor, kMiB), 0);
  file.capacity = file.request_size = 1_MiB;
  file.block_size = 4_KiB;
  file.memory_alignment = 64_B;
  file.tier = "file:data";
  file.depth = 64;
  const auto try_64_threads = [&] {
    try {
      return works(*open_pool_queue(file, 64)) ? 0 : 1;
    } catch (const EnvironmentError& error) {
      return error.place().tier == "file:data" && error.place().cause == EAGAIN ? 2 : 3;
    }
  };
  const int none = with_process_limit(1, try_64_threads);
  // How many threads the process has without us depends on the build.
  int few = none;
  for (rlim_t limit = 2; few == 2 && limit <= 32; ++limit) few = with_process_limit(limit, try_64_threads);
  close(file.descriptor);
  if (few == 77 || none == 77) GTEST_SKIP() << "cannot become a user with few processes";
  EXPECT_EQ(none, 2);
  EXPECT_EQ(few, 0);
}

}  // namespace
}  // namespace terrace

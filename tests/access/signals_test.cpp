// SPDX-License-Identifier: Apache-2.0
// The host program's own signals while accesses are counted.
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>

#include "access/sweeps.hpp"

namespace terrace {
namespace {

sigjmp_buf escape;
std::atomic<int> calls, number_seen, usr1_blocked, segv_blocked;
std::atomic<const void*> address_seen;

void note(int number) {
  ++calls;
  number_seen = number;
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  usr1_blocked = sigismember(&mask, SIGUSR1);
  segv_blocked = sigismember(&mask, SIGSEGV);
}
void on_fault(int number, siginfo_t* info, void*) {
  note(number);
  address_seen = info->si_addr;
  siglongjmp(escape, 1);
}
void on_plain_fault(int number) {
  note(number);
  siglongjmp(escape, 1);
}
void on_sent(int number) { note(number); }

/// Installed for as long as it is in scope.
class Handler {
 public:
  explicit Handler(int number, void (*plain)(int), int flags = 0) : number_(number) {
    struct sigaction action = {};
    action.sa_handler = plain;
    install(action, flags);
  }
  explicit Handler(void (*full)(int, siginfo_t*, void*), int flags = 0) : number_(SIGSEGV) {
    struct sigaction action = {};
    action.sa_sigaction = full;
    install(action, flags | SA_SIGINFO);
  }
  ~Handler() { sigaction(number_, &before_, nullptr); }

 private:
  void install(struct sigaction& action, int flags) {
    calls = 0;
    action.sa_flags = flags;
    sigaddset(&action.sa_mask, SIGUSR1);
    sigaction(number_, &action, &before_);
  }
  int number_;
  struct sigaction before_ = {};
};

/// A page that nobody may touch, in no area.
void* forbidden() {
  static void* const page = mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page;
}
void touch_forbidden() { *static_cast<volatile char*>(forbidden()) = 1; }

class HostSignals : public testing::Test {
 protected:
  PageMemory memory_ = pages_of_memory(4);
};

TEST_F(HostSignals, HandsFaultsElsewhereToTheHandlerThatWasThere) {
  const Handler handler(on_fault);
  const auto watching = watch();
  watching->add(memory_.pages());
  forbidden();
  if (sigsetjmp(escape, 1) == 0) touch_forbidden();
  EXPECT_EQ(calls.load(), 1);
  EXPECT_EQ(number_seen.load(), SIGSEGV);
  EXPECT_EQ(address_seen.load(), forbidden());
  EXPECT_EQ(usr1_blocked.load(), 1) << "by the mask it asked for";
  EXPECT_EQ(segv_blocked.load(), 1);
  read_sweep(memory_.pages());
  EXPECT_EQ(watching->remove(memory_.pages().data()).reads, 4U) << "counting goes on";
  EXPECT_EQ(calls.load(), 1);
}

TEST_F(HostSignals, CallsPlainHandlersAndHonoursTheirFlags) {
  const Handler handler(SIGSEGV, on_plain_fault, SA_NODEFER);
  const auto watching = watch();
  for (int i = 1; i <= 3; ++i) {
    if (sigsetjmp(escape, 1) == 0) touch_forbidden();
    EXPECT_EQ(calls.load(), i);
    EXPECT_EQ(segv_blocked.load(), 0);
  }
}

TEST_F(HostSignals, PassesOnSignalsThatWereSent) {
  const Handler handler(SIGSEGV, on_sent);
  const auto watching = watch();
  raise(SIGSEGV);
  EXPECT_EQ(calls.load(), 1);
}

TEST_F(HostSignals, LeavesIgnoredSignalsIgnored) {
  const Handler handler(SIGSEGV, SIG_IGN);
  const auto watching = watch();
  raise(SIGSEGV);
  watching->add(memory_.pages());
  read_sweep(memory_.pages());
  EXPECT_EQ(watching->remove(memory_.pages().data()).reads, 4U);
}

using HostSignalsDeathTest = HostSignals;

TEST_F(HostSignalsDeathTest, FaultsElsewhereEndTheProcessAsEver) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fault = [this](void (*action)(int), int flags) {
    const Handler handler(SIGSEGV, action, flags);
    const auto watching = watch();
    watching->add(memory_.pages());
    read_sweep(memory_.pages());
    touch_forbidden();
  };
  EXPECT_EXIT(fault(SIG_DFL, 0), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(fault(SIG_IGN, 0), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(fault(on_sent, SA_RESETHAND), testing::KilledBySignal(SIGSEGV), "") << "called once";
}

TEST_F(HostSignalsDeathTest, SignalsSentEndTheProcessAsEver) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto send = [] {
    const Handler handler(SIGSEGV, SIG_DFL);
    const auto watching = watch();
    raise(SIGSEGV);
  };
  EXPECT_EXIT(send(), testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(HostSignals, PutsTheHandlerBackThatWasThere) {
  const Handler handler(on_fault, SA_NODEFER);
  struct sigaction before = {}, meanwhile = {}, after = {};
  sigaction(SIGSEGV, nullptr, &before);
  {
    const auto watching = watch();
    sigaction(SIGSEGV, nullptr, &meanwhile);
  }
  sigaction(SIGSEGV, nullptr, &after);
  EXPECT_NE(meanwhile.sa_sigaction, before.sa_sigaction);
  EXPECT_EQ(after.sa_sigaction, before.sa_sigaction);
  EXPECT_EQ(after.sa_flags, before.sa_flags);
  EXPECT_EQ(sigismember(&after.sa_mask, SIGUSR1), 1);
}

TEST_F(HostSignals, LeavesAHandlerThatWasInstalledMeanwhile) {
  auto watching = watch();
  const Handler handler(on_fault);
  watching.reset();
  struct sigaction after = {};
  sigaction(SIGSEGV, nullptr, &after);
  EXPECT_EQ(after.sa_sigaction, &on_fault);
}

std::span<std::byte> used_by_handler;
void use_pages(int) { write_sweep(used_by_handler); }

TEST_F(HostSignals, CountsWhatHandlersOfOtherSignalsTouch) {
  used_by_handler = memory_.pages();
  const Handler handler(SIGUSR2, use_pages);
  const auto watching = watch();
  watching->add(memory_.pages());
  raise(SIGUSR2);
  EXPECT_EQ(watching->remove(memory_.pages().data()).writes, 4U);
}

TEST_F(HostSignals, KeepsErrno) {
  const auto watching = watch();
  watching->add(memory_.pages());
  errno = 77;
  read_sweep(memory_.pages());
  EXPECT_EQ(errno, 77);
}

TEST_F(HostSignals, CountsOnceAtATime) {
  auto watching = watch();
  const auto second = PageWatch::start();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::pinned);
  watching.reset();
  EXPECT_TRUE(PageWatch::start());
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "profile/access/fault_hook.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <ucontext.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include "terrace/error.hpp"

namespace terrace {
namespace {

// The signal table is the process's own, so what its handler uses is, too.
std::atomic<bool> taken = false;
std::atomic<FaultSink*> sink = nullptr;
std::atomic<int> inside = 0;      // threads that may be using the sink
struct sigaction previous = {};   // set before the handler is installed; kept for handlers that chain to ours
std::atomic<bool> spent = false;  // the previous handler wanted to be called once, and was

#if defined(__x86_64__)
// Bits of the page fault's error code (Intel SDM volume 3, "Page-Fault Exceptions").
constexpr greg_t kWrite = 2, kInstructionFetch = 16;

bool is_taken(const siginfo_t& info, const ucontext_t& context) {
  const greg_t code = context.uc_mcontext.gregs[REG_ERR];
  if (info.si_code != SEGV_ACCERR || (code & kInstructionFetch) != 0) return false;
  inside.fetch_add(1);
  FaultSink* const asked = sink.load();
  const bool done = asked != nullptr && asked->on_fault(static_cast<const std::byte*>(info.si_addr),
                                                        (code & kWrite) != 0 ? Access::write : Access::read);
  inside.fetch_sub(1);
  return done;
}
constexpr bool kTellsWrites = true;
#else
bool is_taken(const siginfo_t&, const ucontext_t&) { return false; }
constexpr bool kTellsWrites = false;
#endif

bool was_sent(const siginfo_t& info) { return info.si_code <= 0; }

/// As the kernel would for the handler that was there before.
void use_its_mask(const ucontext_t& context) {
  sigset_t mask;
  sigemptyset(&mask);
  std::memcpy(&mask, &context.uc_sigmask, _NSIG / 8);  // the kernel's set is shorter than the library's
  for (int number = 1; number < _NSIG; ++number) {
    if (sigismember(&previous.sa_mask, number) == 1) sigaddset(&mask, number);
  }
  if ((previous.sa_flags & SA_NODEFER) == 0) sigaddset(&mask, SIGSEGV);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

void take_default_effect(int number, const siginfo_t& info) {
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGSEGV, &standard, nullptr);
  // A fault comes again by itself; a signal that was sent waits until this handler returns.
  if (was_sent(info)) raise(number);
}

void pass_on(int number, siginfo_t* info, void* context) {
  const bool is_function = (previous.sa_flags & SA_SIGINFO) != 0 ||
                           (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN);
  const bool is_once = (previous.sa_flags & static_cast<int>(SA_RESETHAND)) != 0;
  if (!is_function && previous.sa_handler == SIG_IGN && was_sent(*info)) return;
  if (!is_function || (is_once && spent.exchange(true))) return take_default_effect(number, *info);
  use_its_mask(*static_cast<ucontext_t*>(context));
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(number, info, context);
  } else {
    previous.sa_handler(number);
  }
}

void on_signal(int number, siginfo_t* info, void* context) {
  const int saved = errno;
  if (!is_taken(*info, *static_cast<ucontext_t*>(context))) pass_on(number, info, context);
  errno = saved;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_signal;
}

void exchange(const struct sigaction* next, struct sigaction* before) {
  if (sigaction(SIGSEGV, next, before) == 0) return;
  const int cause = errno;
  throw EnvironmentError(fmt::format("the system refused a handler of protection faults ({}): accesses "
                                     "cannot be counted here",
                                     std::generic_category().message(cause)),
                         {"", "", 0, cause});
}

}  // namespace

Result<FaultHook> FaultHook::install(FaultSink& to) {
  if (!kTellsWrites) {
    return Error{ErrorCode::unsupported,
                 "counting accesses needs to tell reads from writes, which is built for x86-64 only: use the "
                 "graph's own counts"};
  }
  if (taken.exchange(true)) {
    return Error{ErrorCode::pinned,
                 "accesses are being counted already, and a process can do so once at a time: end the other "
                 "profile first"};
  }
  try {
    struct sigaction current = {};
    exchange(nullptr, &current);
    // Where the program chains to our handler of an earlier hook, what came before it is known already.
    if (!is_ours(current)) previous = current;
    spent = false;
    sink = &to;
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;  // a program's own handler may need its stack
    sigfillset(&action.sa_mask);
    exchange(&action, nullptr);
  } catch (...) {
    sink = nullptr;
    taken = false;
    throw;
  }
  return FaultHook();
}

FaultHook::~FaultHook() {
  if (!installed_) return;
  struct sigaction current = {};
  if (sigaction(SIGSEGV, nullptr, &current) == 0 && is_ours(current)) sigaction(SIGSEGV, &previous, nullptr);
  sink = nullptr;
  while (inside.load() != 0) sched_yield();
  taken = false;
}

}  // namespace terrace

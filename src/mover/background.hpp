// Scheduling hints for the mover's threads, so that they disturb the program they work for less. All are best
// effort.
#pragma once

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace terrace {

/// For a thread that copies: it no longer preempts another one when it is woken, but starts when a core is
/// free or its time slice comes. Starting a transfer thus costs the same whether cores are free or busy.
inline void work_in_background() noexcept {
  const sched_param none{};
  sched_setscheduler(0, SCHED_BATCH, &none);
}

/// For a thread that only submits requests to a disk: it needs microseconds but at once, or the disk idles
/// until a computing thread has used up its time slice. It requests a slice so short that it is scheduled
/// first when it is woken; kernels before 6.12 ignore that.
inline void work_in_short_turns() noexcept {
  struct {  // sched_attr, which the C library does not declare
    std::uint32_t size = 48, policy = SCHED_OTHER;
    std::uint64_t flags = 0;
    std::int32_t nice = getpriority(PRIO_PROCESS, 0);
    std::uint32_t priority = 0;
    std::uint64_t turn = 100'000;  // the shortest time slice there is, in nanoseconds
    std::uint64_t deadline = 0, period = 0;
  } attributes;
  syscall(SYS_sched_setattr, 0, &attributes, 0U);
}

}  // namespace terrace

// When the mover's threads get their turn beside the program they work for. All of it is best effort.
#pragma once

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace terrace {

/// For a thread that copies: it no longer interrupts another one when it is woken; it starts when a core is
/// free or its turn comes. So starting a transfer costs the same whether cores are free or busy.
inline void work_in_background() noexcept {
  const sched_param none{};
  sched_setscheduler(0, SCHED_BATCH, &none);
}

/// For a thread that only asks a disk for the next bytes: it takes microseconds but is needed at once, or the
/// disk idles until a computing thread has used up its turn. Asks for turns so short that it comes first when
/// it is woken; kernels before 6.12 do not know of that and change nothing.
inline void work_in_short_turns() noexcept {
  struct {  // sched_attr, which the C library does not declare
    std::uint32_t size = 48, policy = SCHED_OTHER;
    std::uint64_t flags = 0;
    std::int32_t nice = getpriority(PRIO_PROCESS, 0);
    std::uint32_t priority = 0;
    std::uint64_t turn = 100'000;  // in nanoseconds: the shortest there is
    std::uint64_t deadline = 0, period = 0;
  } attributes;
  syscall(SYS_sched_setattr, 0, &attributes, 0U);
}

}  // namespace terrace

// What the mover's threads have in common: they give way to the program they work for.
#pragma once

#include <sched.h>

namespace terrace {

/// The calling thread no longer interrupts another one when it is woken; it starts when a core is free or its
/// turn comes. So starting a transfer costs the same whether cores are free or busy. Best effort.
inline void work_in_background() noexcept {
  const sched_param none{};
  sched_setscheduler(0, SCHED_BATCH, &none);
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "base/affinity.hpp"

#include <sched.h>

#include <array>

namespace terrace {

bool stay_on_cores(unsigned first, unsigned count) {
  std::array<cpu_set_t, 16> allowed{}, chosen{};  // a single cpu_set_t ends at 1024 cores
  if (sched_getaffinity(0, sizeof allowed, allowed.data()) != 0) return false;
  unsigned number = 0, taken = 0;
  for (std::size_t core = 0; core < sizeof allowed * 8 && taken < count; ++core) {
    if (!CPU_ISSET_S(core, sizeof allowed, allowed.data()) || number++ < first) continue;
    CPU_SET_S(core, sizeof chosen, chosen.data());
    ++taken;
  }
  return taken == count && count > 0 && sched_setaffinity(0, sizeof chosen, chosen.data()) == 0;
}

}  // namespace terrace

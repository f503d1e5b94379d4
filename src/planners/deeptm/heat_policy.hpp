// SPDX-License-Identifier: Apache-2.0
// What can be decided without learning. By heat alone, a hot tensor belongs in fast memory, if it has room
// there or colder ones make some.
#pragma once

#include "planners/deeptm/rollout.hpp"

namespace terrace::deeptm {

/// pre: !rollout.done()
inline TierId by_heat(const Rollout& rollout) {
  return rollout.decision().heat >= 0 && rollout.has_room() ? TierId{0} : rollout.slower_tier();
}

/// Nothing is in fast memory from the start; what is used comes and stays until others need its room.
/// pre: !rollout.done()
inline TierId by_demand(const Rollout& rollout) {
  const bool comes = rollout.decision().when != Decision::When::start && rollout.has_room();
  return comes ? TierId{0} : rollout.slower_tier();
}

/// As by demand, where that costs no more at once than slower memory. pre: !rollout.done()
inline TierId by_cost(const Rollout& rollout) {
  const TierId slower = rollout.slower_tier();
  if (by_demand(rollout) == slower) return slower;
  return rollout.cost({0}) <= rollout.cost(slower) ? TierId{0} : slower;
}

}  // namespace terrace::deeptm

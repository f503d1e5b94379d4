// SPDX-License-Identifier: Apache-2.0
// What heat alone decides: a hot tensor belongs in fast memory, if it has room there.
#pragma once

#include "planners/deeptm/rollout.hpp"

namespace terrace::deeptm {

/// pre: !rollout.done()
inline TierId by_heat(const Rollout& rollout) {
  return rollout.decision().heat >= 0 && rollout.has_room() ? TierId{0} : rollout.slower_tier();
}

}  // namespace terrace::deeptm

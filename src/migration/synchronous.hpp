// SPDX-License-Identifier: Apache-2.0
// A plan in which kernels stand still while tensors move.
#pragma once

#include "terrace/plan.hpp"

namespace terrace::migration {

/// Waits for every transfer right after it was started. What a plan may do once a transfer is complete it may
/// still do: completing earlier takes nothing away, so a plan that is safe stays so.
void wait_at_once(Plan& plan);

}  // namespace terrace::migration

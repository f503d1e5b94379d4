// SPDX-License-Identifier: Apache-2.0
// Spreads the kernels of a plan for one lane over several engines.
//
// The order of issue stays. A kernel that goes to another engine gets a ticket, and what uses the same
// regions comes after it: kernels of the first engine and frees wait for it, transfers and kernels of other
// engines start after it. A free of what it uses is put off until the room is needed, so that nobody waits
// for nothing.
#pragma once

#include <functional>

#include "terrace/plan_request.hpp"

namespace terrace {

/// Whatever engine each kernel gets, the plan is as safe as before. pre: the verifier accepts the plan, which
/// has one lane; engines reach the tiers of the operands
Plan spread(const Graph& graph, const Machine& machine, Plan plan,
            const std::function<EngineId(KernelId)>& engine_of);

/// The plan with the frees of regions that such kernels use put off by so many other kernels, as far as the
/// same region is not made again; offsets may overlap then (see repack.hpp). pre: as above; kernels > 0
Plan with_late_frees(const Graph& graph, Plan plan, const std::function<bool(KernelId)>& is_moved,
                     std::uint32_t kernels);

}  // namespace terrace

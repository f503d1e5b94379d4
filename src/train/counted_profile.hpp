// SPDX-License-Identifier: Apache-2.0
// Counts accesses in one step of training within the budget: the profiling step of Sentinel (000
// section 3.1).
//
// The step is carried out on weights of its own and thrown away, so that training begins from the same state
// whether there was one or not. What it counted is kept for all runs to come: no other is needed for the same
// kernels on the same computer.
#pragma once

#include <functional>

#include "terrace/pipeline.hpp"
#include "terrace/trainer.hpp"

namespace terrace {

/// Whether a planner of this name asks how often a kernel sweeps over its operands.
bool wants_accesses(std::string_view planner);
/// Whether the profile says it of every kernel.
bool has_accesses(const Graph& graph, const Profile& profile);

/// Returns the profile with what one step under the plan counted. `fill` sets the inputs. Fails where the
/// trainer does not start and where the system cannot watch memory.
Result<Profile> with_accesses(const Program& program, const Machine& machine, Profile profile,
                              const VerifiedPlan& plan, const TrainerOptions& options,
                              const std::function<void(Trainer&)>& fill, const ProgressSink& progress);

}  // namespace terrace

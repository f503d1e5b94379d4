// SPDX-License-Identifier: Apache-2.0
// What the parts of the planner share about one step: uses, layers, times. Made once for a request.
#pragma once

#include <vector>

#include "plan/step_uses.hpp"
#include "terrace/lifetimes.hpp"
#include "terrace/plan_request.hpp"

namespace terrace::migration {

struct StepView {
  explicit StepView(const PlanRequest& request);

  const PlanRequest& request;
  StepUses uses;
  Lifetimes lifetimes;
  KernelClock clock;
  std::vector<Seconds> begin;               ///< of each kernel, if nothing ever waited; the step's end last
  std::vector<std::uint32_t> first_kernel;  ///< of each layer step; the number of kernels last

  std::uint32_t kernels() const { return uses.kernels(); }
  std::uint32_t layers() const { return lifetimes.layer_steps(); }
};

/// Returns how often a kernel reads and writes one operand, in sweeps over it: 0, 1, ... inputs, outputs,
/// workspace.
double sweeps(const StepView& view, KernelId kernel, std::size_t operand);

}  // namespace terrace::migration

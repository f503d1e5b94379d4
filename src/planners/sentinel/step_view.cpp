#include "planners/sentinel/step_view.hpp"

namespace terrace::sentinel {

StepView::StepView(const PlanRequest& of)
    : request(of), uses(of.graph), lifetimes(of.graph), clock(of.graph, of.machine, of.profile) {
  begin.push_back(Seconds{0});
  for (std::uint32_t k = 0; k < kernels(); ++k) {
    begin.push_back(begin.back() + clock.fast({k}));
    if (k == 0 || lifetimes.layer_step({k}) != lifetimes.layer_step({k - 1})) first_kernel.push_back(k);
  }
  first_kernel.push_back(kernels());
}

/// A kernel reads each input and writes each output once, and does both to its workspace.
double sweeps(const StepView& view, KernelId kernel, std::size_t operand) {
  const Kernel& what = view.request.graph[kernel];
  return operand < what.inputs.size() + what.outputs.size() ? 1 : 2;
}

}  // namespace terrace::sentinel

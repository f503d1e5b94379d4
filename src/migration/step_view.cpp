#include "migration/step_view.hpp"

namespace terrace::migration {

StepView::StepView(const PlanRequest& of)
    : request(of), uses(of.graph), lifetimes(of.graph), clock(of.graph, of.machine, of.profile) {
  begin.push_back(Seconds{0});
  for (std::uint32_t k = 0; k < kernels(); ++k) {
    begin.push_back(begin.back() + clock.fast({k}));
    if (k == 0 || lifetimes.layer_step({k}) != lifetimes.layer_step({k - 1})) first_kernel.push_back(k);
  }
  first_kernel.push_back(kernels());
}

double sweeps(const StepView& view, KernelId kernel, std::size_t operand) {
  const Kernel& what = view.request.graph[kernel];
  const Accesses counted = accesses(view.request.graph, view.request.profile, kernel, operand);
  // What is read and written in place has both counts at both of its operands.
  if (operand < what.inputs.size()) return counted.reads;
  return operand < what.inputs.size() + what.outputs.size() ? counted.writes : counted.reads + counted.writes;
}

}  // namespace terrace::migration

// The simulator: runs a plan on clocks.
//
// One lane for kernels and one for each link. Kernels run in the plan's order, each when the instruction
// before it is done; transfers of a link run one after the other in the order they were started. While a link
// is busy kernels lose the share of their speed that the machine says, and two opposite links share what the
// machine says. Waiting stops the kernels' lane, never the links.
#pragma once

#include <vector>

#include "terrace/plan.hpp"
#include "terrace/profile.hpp"

namespace terrace {

/// When something happened, from the start of the step.
struct Interval {
  Seconds begin{0}, end{0};
  Seconds length() const { return end - begin; }
};

/// What happened when: of a simulated or an executed step.
struct Timeline {
  Seconds step{0};
  Seconds exposed{0};                  ///< in which no kernel ran
  std::vector<Interval> instructions;  ///< one for each; of a copy: the transfer, of a wait: the waiting
  std::vector<Traffic> moved;
  std::vector<Bytes> peak;  ///< bytes of regions at once, by tier
};

/// The step ends when the last instruction is done and every link is idle. pre: `verify` accepts the plan
Timeline simulate(const Graph& graph, const Machine& machine, const Profile& profile, const Plan& plan);
/// The same for whoever simulates often. pre: `clock` was made for this graph and machine
Timeline simulate(const Graph& graph, const Machine& machine, const KernelClock& clock, const Plan& plan);

}  // namespace terrace

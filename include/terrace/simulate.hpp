// SPDX-License-Identifier: Apache-2.0
// The simulator predicts how long a plan takes by running it on simulated clocks.
//
// There is one clock for each engine and one for each link. Kernels of an engine, and transfers of a link,
// run one after the other in the order of issue, each when the tickets it comes after are complete
// (plan.hpp). While a link is busy, kernels lose the share of their speed that the machine declares
// (`compute_loss`), and two opposite links slow each other down as it declares (`both_ways`). Engines do not
// slow each other down. A wait stops the issuing of instructions but never a lane.
#pragma once

#include <vector>

#include "terrace/plan.hpp"
#include "terrace/profile.hpp"

namespace terrace {

/// A span of time, measured from the start of the step.
struct Interval {
  Seconds begin{0}, end{0};
  Seconds length() const { return end - begin; }
};

/// A Timeline tells when each instruction of a simulated or an executed step happened.
struct Timeline {
  Seconds step{0};
  Seconds exposed{0};                  ///< time in which no kernel ran
  std::vector<Interval> instructions;  ///< one for each instruction; for a copy it is the transfer, for a
                                       ///< wait the time spent waiting
  std::vector<Traffic> moved;
  std::vector<Bytes> peak;  ///< the most bytes of regions at once, by tier
};

/// Simulates one step, which ends when the last instruction is done and every lane is idle. pre: `verify`
/// accepts the plan
Timeline simulate(const Graph& graph, const Machine& machine, const Profile& profile, const Plan& plan);
/// Does the same with a clock that the caller keeps for many simulations. pre: `clock` was made for this
/// graph and machine
Timeline simulate(const Graph& graph, const Machine& machine, const KernelClock& clock, const Plan& plan);

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// The planners of AutoTM (001): an integer program says where every tensor lies and when it moves.
//
//   solver=fast|cbc        by Lagrange multipliers (solver/fast.hpp), or exactly (model/program.hpp)
//   gap=0.01               the relative gap between plan and bound at which a solve ends
//   seconds=N              for each solve: CBC's own limit. A caller who starts a planner with it also
//   requests
//                          a stop after as long (PlanRequest::stop), which is what ends the fast solver
//   iterations=N           of the fast solver's multipliers
//   linking=tight|paper    of cbc: how a kernel's configuration follows from its operands
//
// No planner here reads a clock. The fast solver ends after counts of iterations and of work, so its plan is
// the same on every computer. It has two threads; with iterations=N it has one, has no other limit and asks
// no exact program. Where packing needs more than the bytes that are live at once, the program is solved
// again with as much less memory (001 section 4.2 takes 2% from the kernels concerned).
#pragma once

#include <optional>

#include "planners/autotm/model/program.hpp"

namespace terrace {

Result<Plan> plan_autotm_static(const PlanRequest& request);
Result<Plan> plan_autotm_sync(const PlanRequest& request);
Result<Plan> plan_autotm_async(const PlanRequest& request);

namespace autotm {

enum class Solver { fast, cbc };

struct SolverOptions {
  Solver solver = Solver::fast;
  Linking linking = Linking::tight;
  SolverLimits limits;
  std::optional<std::uint64_t> iterations;  ///< of `fast`: the only limit of a solve beside the gap
};
/// Fails on an option that is none of its values.
Result<SolverOptions> solver_options(const PlanRequest& request);

/// A plan, and what the program it comes from says of it. The bound is of all plans of this formulation, not
/// of all plans: it has no place in Plan::prediction.
struct Planned {
  Plan plan;
  Seconds objective{0};  ///< the last solve's; zero where the plan is a last resort
  Seconds bound{0};      ///< the first solve's, which had all of the budget
  bool proven = false;   ///< the last solve came within the gap
  int solves = 0;
};
Result<Planned> plan_by_program(const PlanRequest& request, Formulation formulation);

}  // namespace autotm
}  // namespace terrace

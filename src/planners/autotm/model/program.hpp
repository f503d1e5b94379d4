// SPDX-License-Identifier: Apache-2.0
// AutoTM's integer programs (001 sections 3 and 7), solved exactly. They are the oracle of faster solvers.
#pragma once

#include "optim/cbc.hpp"
#include "planners/autotm/model/instance.hpp"

namespace terrace::autotm {

/// How the one-hot configuration of a kernel follows from where its operands lie. Both give the same
/// solutions; they differ in how much of the truth the linear relaxation sees.
enum class Linking {
  tight,  ///< the sum of all configurations with an operand in fast memory is at most its variable
  paper,  ///< each of these configurations is at most its variable
};

struct SolverLimits {
  double gap = 0.01;                        ///< relative to the bound; 0 asks for a proven optimum
  Seconds time = optim::MilpLimits{}.time;  ///< the user's option seconds=; CBC reads the clock itself
  std::uint64_t nodes = 100'000;            ///< limit of branch and bound
};

/// What a solver found and what it proved.
struct Solved {
  Solution solution;
  Seconds objective{0};  ///< step_time of the solution
  Seconds bound{0};      ///< no solution of this instance is faster
  bool proven = false;   ///< the gap was reached; otherwise time ran out

  double gap() const { return bound.count() > 0 ? objective / bound - 1 : 0; }
};

/// Fails with `too_large` where there is no solution, naming the moment that asks for most; with
/// `unsupported` where time ran out before the first solution, and where the build has no CBC.
Result<Solved> solve_exactly(const PlanRequest& request, const Instance& instance, Linking linking,
                             SolverLimits limits);

/// The same, but the error does not name a moment where there is no solution.
Result<Solved> solve_program(const Instance& instance, Linking linking, SolverLimits limits);

/// Why an instance has no solution: the moment at which most bytes have no other place than fast memory.
Error explain_infeasible(const PlanRequest& request, const Instance& instance);

}  // namespace terrace::autotm

// Writes a solution of a placement problem as a plan.
//
// Between two kernels, first what moved beside the one before is waited for, then memory is given up, then
// tensors are written out, then read in, each waited for at once; last, moves beside the next kernel start.
// So no moment takes more than the solution says, and no two transfers that are waited for overlap.
#pragma once

#include <string>

#include "migration/plan_writer.hpp"
#include "planners/autotm/model/instance.hpp"

namespace terrace::autotm {

/// pre: the solution is one of this instance, which was made for this request
Draft write_solution(const PlanRequest& request, const Instance& instance, const Solution& solution,
                     std::string planner);

}  // namespace terrace::autotm

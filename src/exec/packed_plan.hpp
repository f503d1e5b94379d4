// The plan of a run with everything in one memory, each tensor at the offset its program gives it.
#pragma once

#include "terrace/machine.hpp"
#include "terrace/plan.hpp"
#include "terrace/program.hpp"

namespace terrace {

/// This computer's memory as the only tier, as large as the program's arena.
Machine one_memory(const Program& program);

/// Not for the verifier: inputs give up their memory within the step.
Plan packed_plan(const Program& program);

}  // namespace terrace

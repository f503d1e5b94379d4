// Draws one step as a self-contained HTML page: which tensors were in which tier, and when kernels and
// transfers ran.
#pragma once

#include <filesystem>
#include <string>

#include "terrace/plan.hpp"
#include "terrace/simulate.hpp"

namespace terrace::demo {

struct Picture {
  const Graph& graph;
  const Machine& machine;
  const Plan& plan;
  const Timeline& timeline;  ///< when the plan's instructions happened, simulated or executed
};

std::string to_html(const Picture& picture);

}  // namespace terrace::demo

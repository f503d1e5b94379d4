// A picture of one step: what lived in which tier, and when kernels and transfers ran. One HTML page that
// needs nothing else.
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
  const Timeline& timeline;  ///< of the plan's instructions, simulated or executed
};

std::string to_html(const Picture& picture);

}  // namespace terrace::demo

// SPDX-License-Identifier: Apache-2.0
// How far the regions of a plan reach into each tier: what has to be open for it.
#pragma once

#include <vector>

#include "terrace/plan.hpp"

namespace terrace {

/// One for each tier of the plan's budget.
std::vector<Bytes> reach(const Graph& graph, const Machine& machine, const Plan& plan);

/// Lowers the budget of every tier to what the plan's regions reach, so that no more is taken than is used.
void trim_budget(const Graph& graph, const Machine& machine, Plan& plan);

}  // namespace terrace

// Planners: pure functions from a graph, a profile, a machine and a budget to a plan, or the reason why there
// is none. Every planner's plan passes the verifier.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "terrace/plan.hpp"
#include "terrace/profile.hpp"

namespace terrace {

struct PlanRequest {
  const Graph& graph;
  const Machine& machine;
  const Profile& profile;
  std::vector<Bytes> budget;  ///< one for each tier, none above its capacity
  std::uint64_t seed = 0;
  std::map<std::string, std::string> options = {};  ///< of the planner, by name
};

struct PlannerInfo {
  std::string_view name, summary;
  Result<Plan> (*plan)(const PlanRequest& request);
  std::string_view options = {};  ///< their names, with a space between
};

/// Sorted as users should read them: the best first.
std::span<const PlannerInfo> planners();

/// Whether `make_plan` knows a planner of that name and its options.
Result<void> check_planner(std::string_view planner);

/// Plans, simulates and adds prediction and bound. `planner` is a name, or one with options:
/// `sentinel+reserve=off+interval=4`; those of the request come first. An unknown planner fails with the
/// closest names, a budget below the least with the kernel that needs most and the bytes missing.
Result<Plan> make_plan(std::string_view planner, const PlanRequest& request);

/// What no plan for this graph, machine and budget can be faster than that runs kernels in the graph's order.
struct Bound {
  Seconds step{0};      ///< of plans that may also compute things again
  Seconds moving{0};    ///< of plans that compute everything once
  Seconds compute{0};   ///< all kernels with everything in fast memory
  Seconds transfer{0};  ///< how long the links are busy with what cannot stay, if nothing is computed again
};
Bound step_bound(const PlanRequest& request);

/// The least of tier 0 any plan needs, and the kernel whose operands take it.
struct LeastBudget {
  Bytes bytes;
  KernelId kernel;  ///< none: inputs and results take it
};
LeastBudget least_budget(const Graph& graph, const Machine& machine);

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// What becomes of one planner on one workload: its plan, or why there is none, and the same as JSON with the
// keys that results have everywhere. Plain data.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "terrace/pipeline.hpp"

namespace terrace {

/// One planner's plan for one budget, or why there is none.
struct PlanRow {
  std::string planner;
  Bytes fast;  ///< the budget of the fastest tier
  std::optional<Planned> planned;
  std::string reason;                            ///< why there is none
  ErrorCode code = ErrorCode::invalid_argument;  ///< of what kind the reason is
  Seconds fast_only{0};
  std::optional<Seconds> slow_only;
  std::size_t kernels = 0, tensors = 0;         ///< that were planned for
  std::size_t split_kernels = 0;                ///< of the graph that was asked for, to fit in the budget
  std::map<std::string, std::size_t> variants;  ///< of kernels that have several: how many run as each
  std::vector<double> measured_steps;           ///< of a real run; none: it was not asked for or failed
};

/// Returns the row of a planner that could not be asked, because there is nothing to plan with.
PlanRow refused_row(const Workload& workload, Bytes fast, const std::string& planner,
                    const std::string& reason);
/// Plans; a failure is kept as the row's reason.
PlanRow plan_row(const Workload& workload, const Profile& profile, const std::vector<Bytes>& budget,
                 const std::string& planner, const std::stop_token& stop = {},
                 const ProgressSink& progress = no_progress);

/// `dram>file`: a link as results name it.
std::string link_name(const Machine& machine, TierId from, TierId to);
nlohmann::json moved_json(const Machine& machine, const std::vector<Traffic>& moved);
nlohmann::json peak_json(const Machine& machine, const std::vector<Bytes>& peak);
nlohmann::json violations_json(const std::vector<Violation>& found);
nlohmann::json to_json(const Workload& workload, const PlanRow& row);

}  // namespace terrace

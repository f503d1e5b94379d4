// What is told of a plan: the rows of `terrace plan` and `terrace compare`.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cli/workload_options.hpp"
#include "terrace/pipeline.hpp"

namespace terrace::cli {

/// One planner's plan for one budget, or why there is none.
struct PlanRow {
  std::string planner;
  Bytes fast;  ///< the budget of the fastest tier
  std::optional<Planned> planned;
  std::string reason;  ///< why there is none
  Seconds fast_only{0};
  std::optional<Seconds> slow_only;
  std::size_t kernels = 0, tensors = 0;         ///< that were planned for
  std::size_t split_kernels = 0;                ///< of the graph that was asked for, to fit in the budget
  std::map<std::string, std::size_t> variants;  ///< of kernels that have several: how many run as each
  std::vector<double> measured_steps;           ///< of a real run; none: it was not asked for or failed
};

/// Where there is nothing to plan with.
PlanRow refused_row(const Workload& workload, Bytes fast, const std::string& planner,
                    const std::string& reason);
/// Plans; a failure is kept as the row's reason.
PlanRow plan_row(const Workload& workload, const Profile& profile, const std::vector<Bytes>& budget,
                 const std::string& planner, const std::stop_token& stop = {});

/// `3 kernels were split to fit in 348.00 MiB`; pre: some were
std::string split_text(std::size_t kernels, Bytes fast);

/// The median; 0 of none.
double median_or_zero(const std::vector<double>& numbers);

/// `12.3%`. A plan as fast as the bound may differ from it by rounding.
std::string gap_text(double gap);
/// `dram>file`: a link as results name it.
std::string link_name(const Machine& machine, TierId from, TierId to);
nlohmann::json moved_json(const Machine& machine, const std::vector<Traffic>& moved);
nlohmann::json peak_json(const Machine& machine, const std::vector<Bytes>& peak);
/// `dram>file 1.20 GiB, file>dram 1.10 GiB`, or `nothing`.
std::string moved_text(const Machine& machine, const std::vector<Traffic>& moved);
/// `dram 1.00 GiB, file 4.10 GiB`
std::string peak_text(const Machine& machine, const std::vector<Bytes>& peak);

nlohmann::json to_json(const ModelChoice& model, const Workload& workload, const PlanRow& row);

}  // namespace terrace::cli

// SPDX-License-Identifier: Apache-2.0
// What is told of a plan: the rows of `terrace plan` and `terrace compare`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/workload_options.hpp"
#include "pipeline/plan_row.hpp"

namespace terrace::cli {

/// `3 kernels were split to fit in 348.00 MiB`; pre: some were
std::string split_text(std::size_t kernels, Bytes fast);

/// The median; 0 of none.
double median_or_zero(const std::vector<double>& numbers);

/// `12.3%`. A plan as fast as the bound may differ from it by rounding.
std::string gap_text(double gap);
/// `dram>file 1.20 GiB, file>dram 1.10 GiB`, or `nothing`.
std::string moved_text(const Machine& machine, const std::vector<Traffic>& moved);
/// `dram 1.00 GiB, file 4.10 GiB`
std::string peak_text(const Machine& machine, const std::vector<Bytes>& peak);

nlohmann::json to_json(const ModelChoice& model, const Workload& workload, const PlanRow& row);

}  // namespace terrace::cli

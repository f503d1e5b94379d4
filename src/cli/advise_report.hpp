// SPDX-License-Identifier: Apache-2.0
// What `terrace advise` tells: the curve, the answer, and what more would be worth.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/workload_options.hpp"
#include "pipeline/advice_json.hpp"

namespace terrace::cli {

struct AdviceReport : Advice {
  ModelChoice model;
};

/// Prices are of gigabytes of 1e9 bytes, and so are these: `41.2 GB`, `3.4 MB`.
std::string decimal_text(Bytes amount);
/// `3.1 ms`, `nothing`.
std::string worth_text(double seconds);

void print(const AdviceReport& report);
nlohmann::json to_json(const AdviceReport& report);

}  // namespace terrace::cli

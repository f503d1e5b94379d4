// SPDX-License-Identifier: Apache-2.0
// The JSON of `terrace doctor`: the checks as printed, and the facts as numbers under stable keys.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "machine/checkup.hpp"

namespace terrace::cli {

nlohmann::json to_json(const Computer& computer, const std::vector<Check>& checks);

}  // namespace terrace::cli

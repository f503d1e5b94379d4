// SPDX-License-Identifier: Apache-2.0
#include "terrace/plan_file.hpp"

#include "base/text_file.hpp"

namespace terrace {

Result<Plan> read_plan(const std::filesystem::path& path) { return parse_file(path, plan_from_json); }

void write_plan(const Plan& plan, const std::filesystem::path& path) { write_text(path, to_json(plan)); }

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// Files that hold a plan alone, in the format of docs/formats/plan.md; a record (record.hpp) also holds what
// it is for.
#pragma once

#include <filesystem>

#include "terrace/plan.hpp"

namespace terrace {

Result<Plan> read_plan(const std::filesystem::path& path);
/// Written atomically. Throws ResultError where the path cannot be written to, EnvironmentError where the
/// disk is full or fails.
void write_plan(const Plan& plan, const std::filesystem::path& path);

}  // namespace terrace

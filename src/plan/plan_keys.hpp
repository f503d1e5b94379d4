// SPDX-License-Identifier: Apache-2.0
// The words of docs/formats/plan.md, for the side that writes and the side that reads.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace terrace::plan_keys {

inline constexpr std::string_view kFormat = "terrace-plan";
inline constexpr int kVersion = 1;
/// The largest offset or amount of bytes that is read.
inline constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

inline const std::vector<std::string_view> kPlan{"format",     "version", "planner",     "remark",
                                                 "graph",      "machine", "profile",     "budget",
                                                 "prediction", "start",   "instructions"};
inline const std::vector<std::string_view> kCopyLanes{"after"};
inline const std::vector<std::string_view> kRunLanes{"engine", "ticket", "after"};
inline const std::vector<std::string_view> kPrediction{"step", "bound", "exposed", "moved"};

}  // namespace terrace::plan_keys

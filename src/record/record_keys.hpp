// SPDX-License-Identifier: Apache-2.0
// The words of docs/formats/record.md, for the side that writes and the side that reads.
#pragma once

#include <string_view>
#include <vector>

namespace terrace::record_keys {

inline constexpr std::string_view kFormat = "terrace-record";
inline constexpr int kVersion = 1;

inline const std::vector<std::string_view> kRecord{"format",        "version", "model",        "batch",
                                                   "budget",        "peak",    "split_kernels", "fingerprints",
                                                   "graph",         "machine", "profile",      "plan",
                                                   "result"};
inline const std::vector<std::string_view> kFingerprints{"graph", "machine", "profile", "plan"};

}  // namespace terrace::record_keys

// SPDX-License-Identifier: Apache-2.0
// The keys of docs/formats/machine.md, which the writer and the reader share.
#pragma once

#include <string_view>
#include <vector>

namespace terrace::machine_keys {

inline constexpr std::string_view kFormat = "terrace-machine";
inline constexpr int kVersion = 1;

inline const std::vector<std::string_view> kMachine{"format",  "version", "name",  "source",
                                                    "compute", "tiers",   "links", "engines"};
inline const std::vector<std::string_view> kCompute{"name", "threads", "flops_per_second", "by_type"};
inline const std::vector<std::string_view> kEngine{"name", "threads", "flops_per_second", "by_type",
                                                   "reaches"};
inline const std::vector<std::string_view> kTypedRate{"type", "flops_per_second"};
inline const std::vector<std::string_view> kTier{"name",        "capacity", "addressable", "read",  "write",
                                                 "tiled_write", "latency",  "granularity", "price", "spec"};
inline const std::vector<std::string_view> kLink{"from",         "to",      "rates",           "both_ways",
                                                 "compute_loss", "threads", "while_computing", "by_threads"};
inline const std::vector<std::string_view> kThreaded{"threads", "rate", "compute_loss", "while_computing"};
inline const std::vector<std::string_view> kRate{"size", "rate"};

}  // namespace terrace::machine_keys

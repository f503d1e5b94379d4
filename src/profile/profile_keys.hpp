// SPDX-License-Identifier: Apache-2.0
// The words of a profile's text (docs/formats/record.md), for the side that writes and the side that reads.
#pragma once

#include <string_view>
#include <vector>

namespace terrace::profile_keys {

inline constexpr std::string_view kFormat = "terrace-profile";
inline constexpr int kVersion = 1;

inline const std::vector<std::string_view> kProfile{"format", "version", "graph", "machine", "kernels"};
inline const std::vector<std::string_view> kKernel{"times", "accesses"};

}  // namespace terrace::profile_keys

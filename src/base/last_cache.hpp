// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "terrace/bytes.hpp"

namespace terrace {

/// Returns what the last cache of a core holds; where the system does not say, what many have.
Bytes last_cache();

/// Returns the largest cache that a folder in the form of Linux's /sys/devices/system/cpu/cpu0/cache lists,
/// as in `32768K`; zero where it lists none.
Bytes largest_listed_cache(const std::filesystem::path& folder);

}  // namespace terrace

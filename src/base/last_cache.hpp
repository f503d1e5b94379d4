// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "terrace/bytes.hpp"

namespace terrace {

/// Returns what the last cache of a core holds; where the system does not say, what many have.
Bytes last_cache();

}  // namespace terrace

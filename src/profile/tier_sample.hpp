// SPDX-License-Identifier: Apache-2.0
// A small part of a tier that stands for the whole while something is measured there.
#pragma once

#include <string>

#include "terrace/bytes.hpp"
#include "terrace/result.hpp"
#include "terrace/tier_spec.hpp"

namespace terrace {

/// A spec for `area` bytes of the same memory, never what a user keeps there: a path gets an ending of its
/// own. Fails for a whole device that keeps what is on it.
Result<TierSpec> sample_of(const TierSpec& spec, Bytes area);

/// Returns what the rates of a tier depend on, as text: not its capacity, and of a file only the folder it is
/// in.
std::string rates_key(TierSpec spec);

}  // namespace terrace

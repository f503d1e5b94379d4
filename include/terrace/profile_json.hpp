// SPDX-License-Identifier: Apache-2.0
// Profiles as text: the format of docs/formats/record.md, in which a record holds the profile of its graph.
#pragma once

#include <string>
#include <string_view>

#include "terrace/profile.hpp"

namespace terrace {

/// Writes one line per kernel. Reading what was written gives the same profile.
/// pre: times and accesses are finite and not negative, fingerprints are UTF-8
std::string to_json(const Profile& profile);

/// Checks the form only; `validate` says whether a profile fits a graph and a machine.
Result<Profile> profile_from_json(std::string_view text);

/// Whether the profile has every kernel and variant of the graph, each with all operands in tier 0 first, and
/// names no tier beyond those of the machine. Names the first kernel that is wrong. Fingerprints are not
/// looked at. pre: validate(graph), validate(machine)
Result<void> validate(const Profile& profile, const Graph& graph, const Machine& machine);

}  // namespace terrace

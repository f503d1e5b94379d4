// SPDX-License-Identifier: Apache-2.0
// A record's plan on its own machine or on another. Tiers are taken by their place: what lay in the record's
// second lies in the second there.
#pragma once

#include "terrace/record.hpp"
#include "terrace/workload.hpp"

namespace terrace {

/// Its graph on its own machine; plans for it are not carried out.
Workload workload_of(const Record& record);

/// Fails where the machine has fewer tiers than the record's.
Result<void> has_tiers_for(const Record& record, const Machine& machine);

/// The record's plan as one for that machine; whether it is safe there is for the verifier to say. Fails
/// where a tier is too small for it. pre: the record has a plan, has_tiers_for(record, machine)
Result<Plan> moved_to(const Record& record, const Machine& machine);

}  // namespace terrace

// Measurements happen before a run and in the middle of one. Both take their memory limits and the store that
// keeps their times from here.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "profile/measure.hpp"
#include "terrace/machine.hpp"
#include "terrace/progress.hpp"

namespace terrace {

/// Options that keep measurements within the budget of each tier, and within the sum of the budgets of all
/// tiers that kernels can use in place.
MeasureOptions measure_within(const Machine& machine, std::vector<Bytes> budget);

/// Reports why there is none. A run without a store measures again the next time, which is slower but no
/// worse.
std::optional<ProfileStore> open_profile_store(const std::filesystem::path& file,
                                               const ProgressSink& progress = no_progress);

}  // namespace terrace

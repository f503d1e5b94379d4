// What measurements before a run and in the middle of one share: the memory that they may take, and the place
// where times are kept.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "pipeline/workload.hpp"
#include "profile/measure.hpp"

namespace terrace {

/// Within the budget of each tier, and of all tiers that kernels can use in place together.
MeasureOptions measure_within(const Machine& machine, std::vector<Bytes> budget);

/// Tells why there is none: measuring without a place to keep it is slower the next time, no worse.
std::optional<ProfileStore> open_profile_store(
    const std::filesystem::path& file, const Told& told = [](const std::string&) {});

}  // namespace terrace

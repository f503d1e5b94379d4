// SPDX-License-Identifier: Apache-2.0
// This computer as a machine, measured once and kept in the user's cache folder.
//
// What is kept is found again by the computer (processor, cores, kernel), by the threads that compute, and by
// what the rates of its tiers depend on: not their capacity, and of a file only the folder it is in. Kept for
// thirty days.
#pragma once

#include <filesystem>

#include "profile/calibrate.hpp"
#include "profile/calibrate_device.hpp"

namespace terrace {

/// $XDG_CACHE_HOME/terrace/machines, else ~/.cache/terrace/machines. Fails where neither is known.
Result<std::filesystem::path> machine_cache_folder();

/// Returns where in a folder the machine with these slow tiers and threads is kept, whether or not it is
/// there.
std::filesystem::path machine_cache_file(const std::filesystem::path& folder,
                                         const CalibrateOptions& options);

/// Keeps a machine there for the next time; makes the folder where it is missing. Fails with one sentence
/// where it cannot be written; throws EnvironmentError where the disk is full or fails.
Result<void> keep_machine(const Machine& machine, const std::filesystem::path& file);

/// The machine kept in `folder`, its capacities and specs as asked for now; where there is none, or one that
/// is too old or broken, a new one is measured and kept. A folder that cannot be written to is said in the
/// machine's source. Fails and throws as `calibrate` does.
Result<Machine> this_machine(const CalibrateOptions& options, const std::filesystem::path& folder);
/// In machine_cache_folder().
Result<Machine> this_machine(const CalibrateOptions& options);

/// The same for a machine whose kernels run on a device of this computer; found again by its GPUs, too.
Result<Machine> this_device(const DeviceCalibrateOptions& options, const std::filesystem::path& folder);

}  // namespace terrace

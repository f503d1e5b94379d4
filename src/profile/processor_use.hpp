// SPDX-License-Identifier: Apache-2.0
// Who used the processor: a measurement made while others computed says little about the computer.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "terrace/bytes.hpp"

namespace terrace {

/// Processor time that was used up to one moment. Times of several cores add up.
struct ProcessorUse {
  std::optional<Seconds> all;  ///< by everything on this computer; nothing where the kernel does not say
  Seconds own{0};              ///< by this process
  Seconds elapsed{0};          ///< the moment itself, on the clock
};

/// `root` is where /proc is looked for.
ProcessorUse processor_use(const std::filesystem::path& root = "/");

/// Returns what to tell a user whose measurement was disturbed between two moments; empty where it was not.
std::string disturbance(const ProcessorUse& before, const ProcessorUse& after);

}  // namespace terrace

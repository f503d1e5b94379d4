// Checkup: what this computer offers to Terrace, judged item by item.
//
// look_at() gathers facts, check_up() judges them; both return plain data, so that a program can act on them
// without reading text. Thread-safe.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_limit.hpp"
#include "base/system.hpp"
#include "base/system_storage.hpp"

namespace terrace {

/// The facts about one computer, and about the disk at one folder of it.
struct Computer {
  Cores cores;
  InstructionSets instructions;
  MemoryAmounts memory;
  MemoryLimit usable_memory;
  std::vector<NumaNode> nodes;
  bool numa_built = false;     ///< this build can bind memory to nodes
  bool kernels_built = false;  ///< this build can train networks
  HugePages huge_pages;
  Uring uring;
  std::optional<Bytes> memlock;  ///< empty = unlimited
  std::filesystem::path folder;
  Result<StorageFeatures> storage{StorageFeatures{}};
  Result<DiskSpeed> disk{DiskSpeed{}};
  DaxPlaces dax;
  std::vector<std::string> gpus;
};

enum class CheckStatus {
  ok,
  limited,  ///< works, but less well than it could
  missing,  ///< not there; what needs it is off or takes a slower way
};

std::string_view to_string(CheckStatus status);

struct Check {
  std::string name;  ///< stable: a key in JSON
  CheckStatus status = CheckStatus::ok;
  std::string found;
  std::string advice;  ///< what to do about it; empty where all is well
};

/// Takes a second or two for the disk; `progress` is told how far that is. A folder that cannot be used is a
/// fact too, found in `storage`.
Computer look_at_computer(const std::filesystem::path& folder, const Progress& progress);

/// One check per item, always the same items in the same order.
std::vector<Check> check_up(const Computer& computer);

}  // namespace terrace

// The checkup judges item by item what this computer offers to Terrace.
//
// look_at_computer() gathers facts and check_up() judges them; both return plain data, so that a program can
// act on them without parsing text. Both are thread-safe.
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
  std::optional<Bytes> memlock;  ///< no value means unlimited
  std::filesystem::path folder;
  Result<StorageFeatures> storage{StorageFeatures{}};
  Result<DiskSpeed> disk{DiskSpeed{}};
  DaxPlaces dax;
  std::vector<std::string> gpus;
};

enum class CheckStatus {
  ok,
  limited,  ///< works, but less well than it could
  missing,  ///< absent; features that need it are off or slower
};

std::string_view to_string(CheckStatus status);

struct Check {
  std::string name;  ///< a key in JSON, so it does not change between versions
  CheckStatus status = CheckStatus::ok;
  std::string found;
  std::string advice;  ///< what the user can do about it; empty where the item is ok
};

/// Measures the disk for a second or two, which `progress` follows. A folder that cannot be used is not an
/// error here: `storage` says so.
Computer look_at_computer(const std::filesystem::path& folder, const Progress& progress);

/// Returns one check per item, always the same items in the same order.
std::vector<Check> check_up(const Computer& computer);

}  // namespace terrace

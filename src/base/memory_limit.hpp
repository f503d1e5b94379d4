// memory_limit() tells how much memory this process may still use before the system kills it.
//
// It is the least of what the kernel reports as available and what each control group above this process
// (version 1 or 2) leaves. Page cache counts as usable, because the kernel drops it on demand.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "terrace/bytes.hpp"

namespace terrace {

struct MemoryLimit {
  Bytes available;
  std::string source;  ///< what sets the limit: "MemAvailable" or a control group's folder
};

/// `root` is where /proc and /sys are looked for. Where neither can be read, everything is available.
MemoryLimit memory_limit(const std::filesystem::path& root = "/");

/// Returns the same for one NUMA node; zero where the node does not exist or has no memory.
Bytes memory_on_node(unsigned node, const std::filesystem::path& root = "/");

/// Returns the peak resident memory of this process; zero where the kernel does not report it.
Bytes peak_resident(const std::filesystem::path& root = "/");

/// Returns the peak charge of this process's control group, page cache and other processes included; nothing
/// where it is in no group of its own.
std::optional<Bytes> peak_of_group(const std::filesystem::path& root = "/");

}  // namespace terrace

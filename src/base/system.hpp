// These probes ask the kernel what this computer offers and return plain data.
//
// Nothing here prints, judges or caches: every call asks again. Functions that read /proc and /sys take the
// folder above these, so that a test can describe a computer by files. All are thread-safe. Probes of a disk
// are in system_storage.hpp.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "terrace/bytes.hpp"

namespace terrace {

struct Cores {
  unsigned online = 0;          ///< cores of the computer
  unsigned allowed = 0;         ///< cores that the affinity of this process allows
  std::optional<double> quota;  ///< processor time, in cores, that its control groups allow

  /// Returns how many whole cores this process can keep busy, at least one.
  unsigned usable() const;
};

struct InstructionSets {
  bool sse42 = false, avx2 = false, avx512f = false, avx512_bf16 = false;
  bool amx_advertised = false;  ///< the processor claims to have it
  bool amx_works = false;  ///< a tile instruction was executed; some virtual machines claim AMX and fault
};

struct MemoryAmounts {
  Bytes total, available;
};

struct NumaNode {
  unsigned node = 0;
  Bytes memory;
  unsigned cores = 0;  ///< zero on a node that has memory only (CXL, HBM)
};

struct HugePages {
  std::string transparent;  ///< always, madvise or never; empty where the kernel has none
  Bytes page;               ///< page size of the reserved pool
  std::uint64_t pool_total = 0, pool_free = 0;
};

struct Uring {
  bool built = false;  ///< this build contains liburing
  int error = 0;       ///< errno of setting up and using a ring; 0 = it works
};

struct DaxPlaces {
  std::vector<std::string> devices;  ///< such as /dev/dax0.0
  std::vector<std::string> mounts;   ///< folders mounted with dax
};

Cores probe_cores(const std::filesystem::path& root = "/");
MemoryAmounts probe_memory(const std::filesystem::path& root = "/");
std::vector<NumaNode> probe_numa_nodes(const std::filesystem::path& root = "/");
HugePages probe_huge_pages(const std::filesystem::path& root = "/");
DaxPlaces probe_dax(const std::filesystem::path& root = "/");
/// Lists the GPUs that the kernel shows, whether or not this build can use them.
std::vector<std::string> probe_gpus(const std::filesystem::path& root = "/");

/// Tries AMX in a child process, so that a fault does not end this one.
InstructionSets probe_instruction_sets();
/// Sets up a ring and sends one empty request through it.
Uring probe_uring();
/// Returns how much memory this process may lock; nothing means any amount.
std::optional<Bytes> probe_memlock();
/// Returns whether this build contains libnuma.
bool built_with_numa();
/// Returns whether this build contains oneDNN, and with it the kernels that train networks.
bool built_with_kernels();

}  // namespace terrace

// Measures a profile: how long each kernel of a graph takes here, with all operands in tier 0.
//
// Kernels that are alike (kernel_key.hpp) are measured once, and not at all if the store knows them. What a
// kernel takes with operands elsewhere is left to KernelClock. Sets OpenMP's number of threads and uses its
// team; one at a time.
#pragma once

#include <cstddef>
#include <functional>

#include "profile/store.hpp"
#include "terrace/profile.hpp"

namespace terrace {

struct MeasureProgress {
  std::size_t done = 0, all = 0;  ///< kernels that differ and are not in the store
};

struct MeasureOptions {
  unsigned threads = 1;
  Bytes budget;                   ///< no more memory than this is taken
  ProfileStore* store = nullptr;  ///< borrowed
  std::function<void(const MeasureProgress&)> progress = {};
};

/// The memory is that of the kernel with the largest operands and what is streamed over to empty the caches,
/// or less of the latter where the budget ends: operands that fill a budget do not fit in caches anyway.
/// Fails where the operands of a kernel are larger than the budget, where the system has not as much memory,
/// and for a foreign kernel, which can only be estimated. pre: `lower` made the graph for as many threads
Result<Profile> measure(const Graph& lowered, const Machine& machine, const MeasureOptions& options);

/// Processor, threads and the versions of what computes: times are found again only where all are the same.
std::string compute_key(unsigned threads);

}  // namespace terrace

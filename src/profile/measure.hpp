// Measures a profile: how long each kernel of a graph takes here, by where its operands lie.
//
// Each kernel is measured with all operands in tier 0 first and then, where the machine has further tiers on
// this computer that kernels can use in place, with operands there (measure_placements.hpp). KernelClock
// composes the time of any other placement. Kernels that are alike (kernel_key.hpp) are measured once, and
// not at all if the store knows them. Sets the backend's number of threads and uses its team; one at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "backends/backend.hpp"
#include "profile/store.hpp"
#include "terrace/profile.hpp"
#include "terrace/tier.hpp"

namespace terrace {

struct MeasureProgress {
  /// Counts kernels that differ and are not in the store; those with operands outside tier 0 count twice.
  std::size_t done = 0, all = 0;
};

struct MeasureOptions {
  unsigned threads = 1;
  Bytes budget;                   ///< no more memory than this is taken
  ProfileStore* store = nullptr;  ///< borrowed
  std::function<void(const MeasureProgress&)> progress = {};
  /// How much memory of each tier may be taken; the tiers that kernels can use in place stay within `budget`
  /// together. Empty: only tier 0 is measured.
  std::vector<Bytes> tier_budgets = {};
  /// When the placements of a kernel outside tier 0 have taken so long together, no further one is begun; the
  /// first always is.
  Seconds placement_time{0.5};
  std::function<void(const std::string&)> note = {};  ///< told why a further tier is not measured
  /// Lends memory of a tier to measure in, never more than its budget; without it memory is taken from the
  /// system. A kernel that does not fit in tier 0 is estimated then. pre: there are budgets of tiers
  std::function<Result<std::unique_ptr<Tier>>(TierId tier, Bytes bytes)> lend = {};
  const Backend* backend = nullptr;  ///< that lowered the graph; borrowed. None: this processor's
};

/// Takes memory for the kernel with the largest operands and for what is streamed over to empty the caches,
/// or less of the latter where the budget ends: operands that fill a budget do not fit in caches anyway. It
/// is given back before that of operands in further tiers is taken, which is within the budget of each tier.
/// Fails where the operands of a kernel are larger than the budget, where the system has not as much memory,
/// and for a kernel that is not the backend's. Kernels with tokens are not run but estimated. pre: `lower`
/// made the graph for as many threads
Result<Profile> measure(const Graph& lowered, const Machine& machine, const MeasureOptions& options);

/// Names the processor, the number of threads and the versions of what computes. Times that were kept are
/// found again only where all of these are the same.
std::string compute_key(const Backend& backend, unsigned threads);

}  // namespace terrace

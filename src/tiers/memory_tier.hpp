// MemoryTier is an addressable tier of plain mapped memory: dram, and the base of other kinds.
#pragma once

#include <memory>

#include "terrace/tier.hpp"
#include "tiers/mapping.hpp"

namespace terrace {

/// Regions in memory start at a multiple of a cache line.
constexpr Bytes kCacheLine{64};

class MemoryTier : public Tier {
 public:
  MemoryTier(TierDescription description, Mapping mapping)
      : description_(std::move(description)), mapping_(std::move(mapping)) {}

  const TierDescription& description() const noexcept override { return description_; }
  std::byte* memory() noexcept override { return mapping_.data(); }

 private:
  const TierDescription description_;
  const Mapping mapping_;
};

/// Fills in name, capacity and thread count from the spec, as for every kind of tier. Fails where the
/// capacity is below one granule.
Result<TierDescription> describe(const TierSpec& spec, Bytes granularity);

/// Returns the number of threads beyond which copying into ordinary memory gets no faster.
unsigned memory_copy_threads();
/// Returns the same for slow memory, which many writers slow down (001 Fig. 3, 003 section V, 004 Fig. 1c).
unsigned slow_memory_copy_threads();

/// Refuses, before anything is touched, an amount for which the system would kill the process.
Result<void> require_memory(Bytes needed, const std::string& name);

/// Maps anonymous memory for `description`, requesting huge pages if its spec says so, without touching it.
Mapping map_pages(const TierDescription& description);
/// Pre-touches all of it. The description gets a note where huge pages were refused.
void populate_pages(const Mapping& mapping, TierDescription& description);

/// Maps and populates memory, from the pool of reserved huge pages where the spec asks for them and the pool
/// has enough.
Result<Mapping> anonymous_memory(TierDescription& description);

}  // namespace terrace

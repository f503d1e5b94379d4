// Addressable tiers that are plain mapped memory: dram, and what other kinds build on.
#pragma once

#include <memory>

#include "terrace/tier.hpp"
#include "tiers/mapping.hpp"

namespace terrace {

/// Regions in memory start at cache lines.
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

/// Name, capacity and thread count from the spec, as every kind of tier describes itself. Fails where the
/// capacity is below one granule.
Result<TierDescription> describe(const TierSpec& spec, Bytes granularity);

/// Threads copying into ordinary memory at once: more than this many are not faster.
unsigned memory_copy_threads();
/// The same for slow memory, which many writers slow down (001 Fig. 3, 003 section V, 004 Fig. 1c).
unsigned slow_memory_copy_threads();

/// Refuses, before anything is touched, what would get the process killed.
Result<void> require_memory(Bytes needed, const std::string& name);

/// Anonymous memory for `description`, asked to be in huge pages if its spec says so; nothing touched yet.
Mapping map_pages(const TierDescription& description);
/// Touches it all. The description gains a note where huge pages were refused.
void populate_pages(const Mapping& mapping, TierDescription& description);

/// All of that, from the pool of reserved huge pages where that is asked for and has enough.
Result<Mapping> anonymous_memory(TierDescription& description);

/// pre: spec.kind == dram
Result<std::unique_ptr<Tier>> open_dram_tier(const TierSpec& spec);

}  // namespace terrace

#include "tiers/memory_tier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/memory_limit.hpp"
#include "tiers/huge_pages.hpp"
#include "tiers/kinds.hpp"

namespace terrace {
unsigned memory_copy_threads() { return std::clamp(std::thread::hardware_concurrency(), 1u, 8u); }
unsigned slow_memory_copy_threads() { return std::min(4u, memory_copy_threads()); }

Result<TierDescription> describe(const TierSpec& spec, Bytes granularity) {
  TierDescription description;
  description.spec = spec;
  description.name = to_string(spec);
  description.capacity = round_down(spec.capacity, granularity);
  description.granularity = granularity;
  description.read_rate = spec.read_rate;
  description.write_rate = spec.write_rate;
  description.latency = spec.latency;
  description.write_threads = spec.threads > 0 ? spec.threads : memory_copy_threads();
  if (description.capacity.count > 0) return description;
  return Error{ErrorCode::invalid_argument,
               fmt::format("{} is smaller than the {} that its smallest region takes: ask for at least that",
                           description.name, to_string(granularity))};
}

Result<void> require_memory(Bytes needed, const std::string& name) {
  const MemoryLimit limit = memory_limit();
  const Bytes page_tables = needed / 512;
  if (needed + page_tables <= limit.available) return {};
  return Error{
      ErrorCode::too_large,
      fmt::format("{} needs {} of memory but {} are available (limited by {}): ask for less or free some",
                  name, readable(needed + page_tables), readable(limit.available), limit.source)};
}

Mapping map_pages(const TierDescription& description) {
  if (!description.spec.huge_pages) return map_anonymous(description.capacity, description.name);
  Mapping mapping = map_anonymous(round_up(description.capacity, kHugePage), description.name);
  ask_for_huge_pages(mapping);
  return mapping;
}

void populate_pages(const Mapping& mapping, TierDescription& description) {
  populate(mapping, description.name);
  if (description.spec.huge_pages) description.note = huge_page_note(mapping);
}

Result<Mapping> anonymous_memory(TierDescription& description) {
  if (description.spec.huge_pages) {
    // Reserved huge pages are not part of the available memory, so they are tried before that is checked.
    if (auto reserved = map_reserved_huge_pages(description.capacity)) {
      populate(*reserved, description.name);
      return std::move(*reserved);
    }
  }
  if (const auto enough = require_memory(description.capacity, description.name); !enough)
    return enough.error();
  Mapping mapping = map_pages(description);
  populate_pages(mapping, description);
  return mapping;
}

Result<std::unique_ptr<Tier>> open_dram_tier(const TierSpec& spec) {
  auto description = describe(spec, kCacheLine);
  if (!description) return description.error();
  auto memory = anonymous_memory(*description);
  if (!memory) return memory.error();
  return std::unique_ptr<Tier>(std::make_unique<MemoryTier>(std::move(*description), std::move(*memory)));
}

}  // namespace terrace

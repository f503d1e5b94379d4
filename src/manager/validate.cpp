// Heaps know blocks, and tables know regions and objects; validate() checks that the two agree.
#include <fmt/format.h>

#include <vector>

#include "manager/core.hpp"

namespace terrace {
namespace {

Error broken(std::string what) {
  return {ErrorCode::inconsistent, "the manager's state is inconsistent: " + std::move(what)};
}

// Checks that every block in use is exactly one region.
Result<void> blocks_are_regions(ManagerCore& core) {
  std::size_t blocks = 0;
  for (std::uint32_t tier = 0; tier < core.tiers.size(); ++tier) {
    const Heap& heap = core.heaps[tier];
    if (Result<void> sound = heap.validate(); !sound) return sound;
    std::string fault;
    heap.each([&](Slot slot) {
      ++blocks;
      const RegionEntry* entry = core.regions.find(region_of(heap, slot));
      if (entry == nullptr || entry->slot != slot || entry->tier.index != tier) {
        fault = fmt::format("the block at {} of tier {} is no region", heap.offset(slot), tier);
      }
    });
    if (!fault.empty()) return broken(fault);
  }
  if (blocks != core.regions.size())
    return broken(fmt::format("{} blocks but {} regions", blocks, core.regions.size()));
  return {};
}

// Checks that the object has one primary, which is current, at most one region on each tier, none newer than
// the object, and each large enough.
std::string fault_of(ManagerCore& core, ObjectId id, const Object& object, std::size_t& linked) {
  std::vector<bool> seen(core.tiers.size());
  RegionId at = object.primary;
  do {
    const RegionEntry* region = core.regions.find(at);
    if (region == nullptr) return "it links to a region that is gone";
    if (!region->linked || region->object != id) return "one of its regions belongs elsewhere";
    if (seen[region->tier.index]) return "it has two regions on one tier";
    if (region->version > object.version) return "a region is newer than the object";
    if (region->data != core.address(region->tier, region->slot))
      return "a region is not where its heap says";
    if (core.heaps[region->tier.index].size(region->slot) < object.size)
      return "a region is smaller than the object";
    seen[region->tier.index] = true;
    ++linked;
    at = region->sibling;
  } while (at != object.primary);
  if (core.regions[object.primary].version != object.version) return "its primary is stale";
  if (object.writer && (object.readers > 0 || object.copy != nullptr))
    return "it is written while read or copied";
  if (object.copy != nullptr && object.copy->finished) return "its copy is finished but not taken note of";
  if (object.ending && !object.pinned() && object.copy == nullptr)
    return "it has ended but keeps its regions";
  return {};
}

}  // namespace

Result<void> ManagerCore::validate() {
  if (Result<void> sound = blocks_are_regions(*this); !sound) return sound;
  std::size_t linked = 0, owned = 0, in_copy = 0;
  std::string fault;
  objects.each([&](ObjectId id, const Object& object) {
    in_copy += object.copy != nullptr;
    if (std::string found = fault_of(*this, id, object, linked); !found.empty()) {
      fault = fmt::format("object {}: {}", id.index, found);
    }
  });
  regions.each([&](RegionId, const RegionEntry& entry) { owned += entry.linked; });
  if (fault.empty() && linked != owned)
    fault = fmt::format("{} regions have an object, {} are reached from one", owned, linked);
  if (fault.empty() && in_copy != in_flight.size())
    fault = fmt::format("{} copies, {} objects in copy", in_flight.size(), in_copy);
  return fault.empty() ? Result<void>() : broken(fault);
}

}  // namespace terrace

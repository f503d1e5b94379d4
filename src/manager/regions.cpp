#include "terrace/regions.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/check.hpp"
#include "manager/core.hpp"
#include "terrace/error.hpp"

namespace terrace {
namespace {
using namespace literals;

// Below this amount a link's measured rate is dominated by the cost of starting transfers.
constexpr Bytes kEnoughToKnow = 16_MiB;

}  // namespace

Region::Region(Region&& other) noexcept : core_(std::exchange(other.core_, nullptr)), id_(other.id_) {}

Region& Region::operator=(Region&& other) noexcept {
  std::swap(core_, other.core_);
  std::swap(id_, other.id_);
  return *this;
}

Region::~Region() {
  if (core_ != nullptr) core_->release(id_);
}

bool Regions::alive(ObjectId id) const {
  const Object* object = core_.objects.find(id);
  return object != nullptr && !object->ending;
}

Bytes Regions::size(ObjectId object) const { return core_.objects[object].size; }
RegionId Regions::primary(ObjectId object) const { return core_.objects[object].primary; }
bool Regions::pinned(ObjectId object) const { return core_.objects[object].pinned(); }
bool Regions::writing(ObjectId object) const { return core_.objects[object].writer; }
bool Regions::copying(ObjectId object) const { return core_.objects[object].copy != nullptr; }

void Regions::set_primary(ObjectId id, RegionId region) {
  Object& object = core_.objects[id];
  const RegionEntry& entry = core_.regions[region];
  check(entry.linked && entry.object == id, "a primary must be linked to its object");
  check(entry.version == object.version, "a stale region was to become primary");
  check(movable(id), "the object is in use");
  if (region == object.primary) return;
  const TierId before = tier(object.primary);
  (before < entry.tier ? core_.evictions : core_.promotions) += 1;
  object.primary = region;
  core_.policy->moved(*this, id);
}

void Regions::retire(ObjectId object) { core_.end(object, core_.objects[object]); }

Result<Region> Regions::allocate(TierId tier, Bytes size) {
  Heap& heap = core_.heaps.at(tier.index);
  Result<Slot> slot = heap.allocate(size);
  if (!slot) {
    return Error{slot.error().code,
                 core_.tiers[tier.index]->description().name + ": " + slot.error().message};
  }
  const RegionId id = core_.regions.insert(
      RegionEntry(tier, *slot, core_.address(tier, *slot), description(tier).addressable));
  heap.set_owner(*slot, pack(id));
  return Region(core_, id);
}

void Regions::free(RegionId region) {
  core_.detach(region);
  core_.release(region);
}

RegionId Regions::link(RegionId sibling, Region&& region) {
  RegionEntry& family = core_.regions[sibling];
  check(family.linked, "a region can only be linked to one that has an object");
  RegionEntry& entry = core_.regions[region.id()];
  check(!entry.linked && !linked(sibling, entry.tier), "the object has a region on this tier already");
  check(size(region.id()) >= size(family.object), "the region is smaller than the object");
  entry.object = family.object;
  entry.linked = true;
  entry.version = 0;
  entry.sibling = std::exchange(family.sibling, region.id());
  core_.tell_gained(entry);
  region.core_ = nullptr;
  return region.id();
}

Region Regions::unlink(RegionId secondary) {
  core_.detach(secondary);
  return Region(core_, secondary);
}

Bytes Regions::size(RegionId region) const {
  const RegionEntry& entry = core_.regions[region];
  return core_.heaps[entry.tier.index].size(entry.slot);
}

TierId Regions::tier(RegionId region) const { return core_.regions[region].tier; }

std::optional<RegionId> Regions::linked(RegionId region, TierId tier) const {
  RegionId at = region;
  do {
    const RegionEntry& entry = core_.regions[at];
    if (entry.tier == tier) return at;
    if (!entry.linked) return std::nullopt;
    at = entry.sibling;
  } while (at != region);
  return std::nullopt;
}

std::optional<ObjectId> Regions::parent(RegionId region) const {
  const RegionEntry& entry = core_.regions[region];
  return entry.linked ? std::optional(entry.object) : std::nullopt;
}

void Regions::copy(RegionId to, RegionId from) { core_.copy_now(lock_, to, from); }

void Regions::start_copy(RegionId to, RegionId from) { core_.start(to, from, Priority::background); }

bool Regions::wait_for_copy() {
  if (core_.in_flight.empty()) return false;
  core_.wait(lock_, core_.in_flight.front());
  return true;
}

void Regions::wait_for_copies() { core_.wait_for_all(lock_); }

bool Regions::stale(RegionId region) const {
  const RegionEntry& entry = core_.regions[region];
  return !entry.linked || entry.version != core_.objects[entry.object].version;
}

bool Regions::dirty(RegionId region) const {
  for (RegionId at = core_.regions[region].sibling; at != region; at = core_.regions[at].sibling) {
    if (!stale(at)) return false;
  }
  return true;
}

void Regions::mark_dirty(RegionId region) {
  Object& object = core_.objects[core_.regions[region].object];
  check(region == object.primary, "only a primary's contents change");
  check(object.copy == nullptr, "a copy of this object is in progress");
  core_.regions[region].version = ++object.version;
}

void Regions::mark_clean(RegionId region) {
  const Object& object = core_.objects[core_.regions[region].object];
  check(region == object.primary, "only a primary is compared with");
  check(object.copy == nullptr, "a copy of this object is in progress");
  for (RegionId at = core_.regions[region].sibling; at != region; at = core_.regions[at].sibling) {
    core_.regions[at].version = object.version;
  }
}

std::uint32_t Regions::tiers() const { return static_cast<std::uint32_t>(core_.tiers.size()); }
const TierDescription& Regions::description(TierId tier) const {
  return core_.tiers.at(tier.index)->description();
}
Bytes Regions::free_bytes(TierId tier) const { return core_.heaps.at(tier.index).statistics().free; }
Bytes Regions::largest_hole(TierId tier) const { return core_.heaps.at(tier.index).largest_hole(); }

BytesPerSecond Regions::rate(TierId from, TierId to) const {
  const LinkStatistics seen = core_.mover->statistics(from, to);
  const bool known = !core_.mover->rehearsal() && seen.bytes >= kEnoughToKnow && seen.busy.count() > 0;
  if (known) return seen.bandwidth();
  const BytesPerSecond read = description(from).read_rate, write = description(to).write_rate;
  if (read.value == 0 || write.value == 0) return std::max(read, write);
  return std::min(read, write);
}

Result<Bytes> Regions::evict_from(TierId tier, RegionId start, Bytes size,
                                  const std::function<bool(RegionId)>& evict) {
  Heap& heap = core_.heaps.at(tier.index);
  const RegionEntry& first = core_.regions[start];
  check(first.tier == tier, "the first region to evict lies on another tier");
  return heap.evict_from(first.slot, size, [&](Slot slot) {
    const RegionId region = region_of(heap, slot);
    evict(region);
    // Its object may have ended during a copy and still be held by a pin, so the table is asked whether the
    // region is freed.
    return core_.regions.find(region) == nullptr;
  });
}

// A move that fails must leave its source intact. Where source and destination overlap, only a memmove
// guarantees that.
bool ManagerCore::slide(TierId tier, std::uint64_t from, std::uint64_t to, Bytes size) {
  if (mover->rehearsal()) return false;  // a plan cannot express a move within a tier
  std::byte* memory = tiers[tier.index]->memory();
  const bool overlap = from - to < size.count;
  if (overlap && memory == nullptr) return false;
  const auto started = std::chrono::steady_clock::now();
  const auto took = [&] { return Seconds(std::chrono::steady_clock::now() - started); };
  if (overlap) std::memmove(memory + to, memory + from, size.count);
  try {
    if (overlap) {
      tiers[tier.index]->pace(Access::read, size, took());
      tiers[tier.index]->pace(Access::write, size, took());
    } else {
      mover->move({Move{{tier, from, size}, {tier, to, size}}});
    }
    return true;
  } catch (const EnvironmentError& failure) {
    if (!overlap) note_failure(failure.what());
    return overlap;  // a memmove cannot be undone
  } catch (...) {
    if (!overlap) throw;
    return true;
  }
}

void Regions::compact(TierId tier) {
  Heap& heap = core_.heaps.at(tier.index);
  heap.compact([&](Slot slot, std::uint64_t from, std::uint64_t to, Bytes size) {
    RegionEntry& entry = core_.regions[region_of(heap, slot)];
    if (!entry.linked || !movable(entry.object) || !core_.slide(tier, from, to, size)) return false;
    if (entry.data != nullptr) entry.data -= from - to;
    if (core_.observer != nullptr) core_.observer->slid(entry.object, tier, to);
    return true;
  });
}

}  // namespace terrace

#include "terrace/recency_policy.hpp"

#include <fmt/format.h>

namespace terrace {
namespace {

// Other threads may take the room that was made, so making room is retried, but not for ever.
constexpr int kAttempts = 16;

// Returns the object's region on a tier, allocating it if there is none.
Result<RegionId> region_on(Regions& regions, ObjectId object, TierId tier) {
  const RegionId primary = regions.primary(object);
  if (const auto there = regions.linked(primary, tier)) return *there;
  Result<Region> fresh = regions.allocate(tier, regions.size(object));
  if (!fresh) return fresh.error();
  return regions.link(primary, std::move(*fresh));
}

// A region on a fast tier whose copy failed is freed.
void copy_or_free(Regions& regions, ObjectId object, RegionId to) {
  try {
    regions.copy(to, regions.primary(object));
  } catch (...) {
    if (regions.alive(object)) regions.free(to);
    throw;
  }
}

Error in_use() { return {ErrorCode::pinned, "the object came into use or ended while it was moved"}; }

}  // namespace

Result<void> evict(Regions& regions, ObjectId object, TierId to) {
  const RegionId x = regions.primary(object);
  const Result<RegionId> y = region_on(regions, object, to);
  if (!y) return y.error();
  if (regions.stale(*y)) regions.copy(*y, x);
  if (!regions.alive(object) || !regions.movable(object)) return in_use();
  regions.set_primary(object, *y);
  regions.free(x);
  return {};
}

Result<void> prefetch(Regions& regions, ObjectId object, TierId to,
                      const std::function<Result<void>(Bytes)>& make_room) {
  const auto settled = [&] { return !regions.copying(object) && !regions.writing(object); };
  if (regions.tier(regions.primary(object)) == to || !settled()) return {};
  Result<RegionId> y = region_on(regions, object, to);
  if (!y && make_room) {
    if (const Result<void> made = make_room(regions.size(object)); !made) return made.error();
    if (!regions.alive(object) || !settled()) return {};
    y = region_on(regions, object, to);
  }
  if (!y) return y.error();
  if (regions.stale(*y)) copy_or_free(regions, object, *y);
  if (regions.alive(object) && regions.movable(object)) regions.set_primary(object, *y);
  return {};
}

Result<void> RecencyPolicy::fetch(Regions& regions, ObjectId object, Access) {
  Error why{ErrorCode::unsupported,
            "no tier is addressable: add one that kernels can use, such as dram:1GiB"};
  for (TierId tier{0}; tier.index < regions.tiers(); ++tier.index) {
    if (!regions.description(tier).addressable) continue;
    const Result<void> fetched = fetch_to(regions, object, tier);
    if (fetched) return {};
    why = fetched.error();
    if (!regions.alive(object)) return {};
  }
  return why;
}

void RecencyPolicy::created(Regions& regions, ObjectId object) {
  recency_.add(object, regions.tier(regions.primary(object)));
}
void RecencyPolicy::touched(Regions&, ObjectId object, Access) { recency_.touch(object); }
void RecencyPolicy::moved(Regions& regions, ObjectId object) {
  recency_.move(object, regions.tier(regions.primary(object)));
}
void RecencyPolicy::forgotten(ObjectId object) { recency_.remove(object); }

Result<Region> RecencyPolicy::place_at(Regions& regions, TierId first, Bytes size) {
  std::string reasons;
  for (TierId tier = first; tier.index < regions.tiers(); ++tier.index) {
    Result<Region> region = regions.allocate(tier, size);
    if (region) return region;
    if (const Result<void> made = make_room(regions, tier, size); made) {
      region = regions.allocate(tier, size);
      if (region) return region;
    }
    reasons += (reasons.empty() ? "" : "; ") + region.error().message;
  }
  return Error{ErrorCode::tier_full,
               fmt::format("no tier has room for an object of {}: {}", readable(size), reasons)};
}

Result<void> RecencyPolicy::fetch_to(Regions& regions, ObjectId object, TierId tier) {
  if (regions.tier(regions.primary(object)) == tier) return {};
  return prefetch(regions, object, tier, [&](Bytes size) { return make_room(regions, tier, size); });
}

Result<void> RecencyPolicy::make_room(Regions& regions, TierId tier, Bytes size) {
  if (size > regions.description(tier).capacity) {
    return Error{ErrorCode::too_large,
                 fmt::format("{} does not fit in {}", readable(size), regions.description(tier).name)};
  }
  for (int attempt = 0; attempt < kAttempts && regions.largest_hole(tier) < size; ++attempt) {
    const auto victim = recency_.coldest(tier, [&](ObjectId object) { return regions.movable(object); });
    if (!victim) break;
    if (!regions.evict_from(tier, regions.primary(*victim), size,
                            [&](RegionId region) { return clear(regions, region); }))
      break;
  }
  if (regions.largest_hole(tier) < size) drop_copies(regions, tier, size);
  if (regions.largest_hole(tier) >= size) return {};
  return Error{
      ErrorCode::tier_full,
      fmt::format(
          "no room for {} in {}: its largest hole is {}, and what is left there is in use or has nowhere to "
          "go; release views or give it or a slower tier more memory",
          readable(size), regions.description(tier).name, readable(regions.largest_hole(tier)))};
}

bool RecencyPolicy::clear(Regions& regions, RegionId region) {
  const std::optional<ObjectId> object = regions.parent(region);
  if (!object || !regions.alive(*object) || regions.copying(*object)) return false;
  if (regions.primary(*object) != region) return regions.free(region), true;
  return !regions.pinned(*object) && evict_down(regions, *object);
}

bool RecencyPolicy::evict_down(Regions& regions, ObjectId object) {
  const TierId from = regions.tier(regions.primary(object));
  const Bytes size = regions.size(object);
  for (TierId to{from.index + 1}; to.index < regions.tiers(); ++to.index) {
    const Result<void> evicted = evict(regions, object, to);
    if (evicted) return true;
    if (evicted.error().code == ErrorCode::pinned) return false;
  }
  for (TierId to{from.index + 1}; to.index < regions.tiers(); ++to.index) {
    const bool made = make_room(regions, to, size).ok();
    if (!regions.alive(object)) return false;
    if (!made) continue;
    if (!regions.movable(object) || regions.tier(regions.primary(object)) != from) return false;
    if (evict(regions, object, to)) return true;
  }
  return false;
}

// Frees secondaries on this tier, which makes room at no cost but a later copy.
void RecencyPolicy::drop_copies(Regions& regions, TierId tier, Bytes size) {
  for (TierId other{0}; other.index < regions.tiers(); ++other.index) {
    if (other == tier) continue;
    recency_.coldest(other, [&](ObjectId object) {
      if (regions.largest_hole(tier) >= size) return true;
      const auto copy =
          regions.copying(object) ? std::nullopt : regions.linked(regions.primary(object), tier);
      if (copy) regions.free(*copy);
      return false;
    });
  }
}

}  // namespace terrace

// RecencyPolicy: the base of policies that let the least recently used objects make way. It knows how to make
// room on any tier and how to fetch; what derives from it decides when.
#pragma once

#include "terrace/policy.hpp"
#include "terrace/recency.hpp"

namespace terrace {

/// Moves an object's contents to a slower tier and gives up the region they were in (003 Listing 1). Copies
/// nothing if that tier has them already. Fails with tier_full, or with pinned if the object came into use
/// meanwhile. pre: movable(object)
Result<void> evict(Regions& regions, ObjectId object, TierId to);

/// Brings an object's contents to a faster tier and keeps the slower region linked (003 Listing 2).
/// `make_room(size)` is asked when that tier is full; an empty function means: then leave the object where it
/// is. pre: alive(object)
Result<void> prefetch(Regions& regions, ObjectId object, TierId to,
                      const std::function<Result<void>(Bytes)>& make_room);

class RecencyPolicy : public Policy {
 public:
  Result<void> fetch(Regions& regions, ObjectId object, Access access) override;
  void created(Regions& regions, ObjectId object) override;
  void touched(Regions& regions, ObjectId object, Access access) override;
  void moved(Regions& regions, ObjectId object) override;
  void forgotten(ObjectId object) override;

 protected:
  static constexpr TierId kFastest{0};
  static TierId slowest(const Regions& regions) { return {regions.tiers() - 1}; }

  /// A region on the first tier at or below `first` that has room or can be given room.
  Result<Region> place_at(Regions& regions, TierId first, Bytes size);
  /// Clears a hole of `size` on a tier: its coldest object and what lies behind it go to slower tiers.
  Result<void> make_room(Regions& regions, TierId tier, Bytes size);
  /// prefetch(), by force.
  Result<void> bring(Regions& regions, ObjectId object, TierId tier);
  /// Evicts to the next slower tier with room, or whose own objects can go further down.
  bool evict_down(Regions& regions, ObjectId object);

  Recency recency_;

 private:
  bool clear(Regions& regions, RegionId region);
  void drop_copies(Regions& regions, TierId tier, Bytes size);
};

}  // namespace terrace

// RecencyPolicy is the base of policies that evict the least recently used objects. It knows how to make room
// on any tier and how to fetch; a derived policy decides when.
#pragma once

#include "terrace/policy.hpp"
#include "terrace/recency.hpp"

namespace terrace {

/// Moves an object's contents to a slower tier and frees the region they were in (003 Listing 1). It copies
/// nothing if that tier holds the current contents already. Fails with tier_full, or with pinned if the
/// object came into use meanwhile. pre: movable(object)
Result<void> evict(Regions& regions, ObjectId object, TierId to);

/// Moves an object's contents to a faster tier and keeps the slower region linked (003 Listing 2).
/// `make_room(size)` is called when that tier is full; with an empty function the object then stays where it
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

  /// Returns a region on the first tier at or below `first` that has room or where room can be made.
  Result<Region> place_at(Regions& regions, TierId first, Bytes size);
  /// Clears a hole of `size` on a tier by evicting its coldest object and the objects behind that to slower
  /// tiers.
  Result<void> make_room(Regions& regions, TierId tier, Bytes size);
  /// Fetches the object to a tier and makes room for it there if need be.
  Result<void> fetch_to(Regions& regions, ObjectId object, TierId tier);
  /// Evicts the object to the next slower tier that has room or can evict objects of its own to a slower one.
  bool evict_down(Regions& regions, ObjectId object);

  Recency recency_;

 private:
  bool clear(Regions& regions, RegionId region);
  void drop_copies(Regions& regions, TierId tier, Bytes size);
};

}  // namespace terrace

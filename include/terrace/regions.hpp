// Regions offers what a policy may do. It is the data-management interface of 003 section III-C, for any
// number of tiers.
//
// An object has one primary region, which holds its contents, and at most one linked secondary on each other
// tier. A secondary is current until the object is next written; from then on it is stale and never read.
//
// A `Regions` exists only during a call of the policy: the manager's lock is held, and is released only
// inside copy(), wait_for_copy(), wait_for_copies() and evict_from(). After these, other threads may have
// created, moved or ended any object: ask alive() and primary() again.
//
// A broken `pre:` is a bug in the policy and throws std::logic_error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "terrace/bytes.hpp"
#include "terrace/result.hpp"
#include "terrace/tier_spec.hpp"

namespace terrace {

struct ManagerCore;

/// An ObjectId names an object of one manager. It is never reused for another object.
struct ObjectId {
  std::uint32_t index = 0, generation = 0;
  bool operator==(const ObjectId&) const = default;
};

/// A RegionId names a region of one manager. It is never reused for another region.
struct RegionId {
  std::uint32_t index = 0, generation = 0;
  bool operator==(const RegionId&) const = default;
};

/// A Region belongs to no object yet. Destroying it frees the region.
class Region {
 public:
  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;
  ~Region();

  RegionId id() const noexcept { return id_; }

 private:
  friend class Regions;
  friend struct ManagerCore;
  Region(ManagerCore& core, RegionId id) : core_(&core), id_(id) {}
  ManagerCore* core_;
  RegionId id_;
};

class Regions {
 public:
  // Objects.
  bool alive(ObjectId object) const;  ///< neither retired nor destroyed
  Bytes size(ObjectId object) const;  ///< as created. pre for all below: alive(object)
  RegionId primary(ObjectId object) const;
  bool pinned(ObjectId object) const;   ///< a pin is held: its primary may not change
  bool writing(ObjectId object) const;  ///< a pin for writing is held: it may not be copied
  bool copying(ObjectId object) const;  ///< a copy is in progress: it may not be moved
  bool movable(ObjectId object) const { return !pinned(object) && !copying(object); }
  /// pre: movable(object); `region` is linked to the object and current.
  void set_primary(ObjectId object, RegionId region);
  /// Frees all its regions without copying, now or as soon as no pin or copy uses them. The object never
  /// moves again.
  void retire(ObjectId object);

  // Regions.
  /// Allocates a region; fails with tier_full or too_large.
  Result<Region> allocate(TierId tier, Bytes size);
  /// Frees a secondary. pre: not the primary, not part of a copy.
  void free(RegionId region);
  /// Makes `region` a secondary of the object that `sibling` belongs to. It is stale until it is copied to.
  /// pre: that object has no region on the same tier.
  RegionId link(RegionId sibling, Region&& region);
  /// Detaches a secondary from its object. pre: as for free().
  Region unlink(RegionId secondary);
  Bytes size(RegionId region) const;  ///< the object's size rounded up to the tier's granularity
  TierId tier(RegionId region) const;
  std::optional<RegionId> linked(RegionId region,
                                 TierId tier) const;  ///< the same object's region there, if any
  std::optional<ObjectId> parent(RegionId region) const;

  // Contents.
  /// Copies the object's contents to its secondary `to` and returns when that is complete. The lock is
  /// released meanwhile, and the object is copying() for other threads. Throws EnvironmentError; `to` is then
  /// stale and `from` intact. pre: both belong to one object, `from` is current, `to` is not the primary, and
  /// neither a writer nor a copy is in progress.
  void copy(RegionId to, RegionId from);
  /// Starts the same copy in the background and returns at once; Policy::copied() is called when it is
  /// complete.
  void start_copy(RegionId to, RegionId from);
  /// Waits until some background copy is complete; returns false at once if none is in progress.
  bool wait_for_copy();
  /// Waits until every copy that is in progress now is complete.
  void wait_for_copies();
  bool stale(RegionId region) const;  ///< it does not hold the object's current contents
  /// Returns whether no secondary holds the primary's contents. pre for these three: `region` is a primary.
  bool dirty(RegionId region) const;
  void mark_dirty(RegionId region);  ///< its contents changed, so every secondary is stale
  void mark_clean(RegionId region);  ///< the caller guarantees that every secondary equals it

  // Tiers.
  std::uint32_t tiers() const;
  const TierDescription& description(TierId tier) const;
  Bytes free_bytes(TierId tier) const;
  Bytes largest_hole(TierId tier) const;
  /// Returns the measured bandwidth once enough bytes have gone over the link, before that the declared one,
  /// and zero if neither is known.
  BytesPerSecond rate(TierId from, TierId to) const;
  /// Clears `size` contiguous bytes of a tier, at or after region `start` (003 Listing 2). `evict` is called
  /// for each region in the range and returns whether it was freed. The lock is released where `evict`
  /// releases it.
  Result<Bytes> evict_from(TierId tier, RegionId start, Bytes size,
                           const std::function<bool(RegionId)>& evict);
  /// Compacts a tier's free space into one hole, except around pinned regions. It is the only function that
  /// moves bytes while it holds the lock, so call it at quiet moments such as the end of a step.
  void compact(TierId tier);

 private:
  friend struct ManagerCore;
  Regions(ManagerCore& core, std::unique_lock<std::mutex>& lock) : core_(core), lock_(lock) {}
  ManagerCore& core_;
  std::unique_lock<std::mutex>& lock_;
};

}  // namespace terrace

// ManagerCore is the manager's state, which its two interfaces share: Manager for applications and Regions
// for policies.
//
// `mutex` guards everything here and is never held while bytes move, except in compact. A copy in progress is
// an ObjectCopy; the first thread that finds it complete records the outcome: one that waited for it, or the
// next that takes the lock.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "manager/slot_map.hpp"
#include "terrace/manager.hpp"

namespace terrace {

/// An ObjectCopy is a copy of one object's contents to one of its secondaries.
struct ObjectCopy {
  ObjectId object;
  RegionId from, to;
  std::uint64_t version = 0;  ///< version of the contents that are copied
  bool background = false;
  bool finished = false;
  std::exception_ptr error;
  Transfer transfer;
};

struct RegionEntry {
  RegionEntry(TierId on, Slot at, std::byte* bytes, bool usable)
      : tier(on), slot(at), data(bytes), addressable(usable) {}

  TierId tier;
  Slot slot;
  std::byte* data;  ///< nullptr where the tier is not addressable, and in a rehearsal
  bool addressable;
  ObjectId object;  ///< meaningful while `linked`
  bool linked = false;
  RegionId sibling;           ///< the next region in the ring of one object's regions
  std::uint64_t version = 0;  ///< version of the contents it holds; 0 = none
};

/// The owner of a heap's block is the id of its region.
inline std::uint64_t pack(RegionId id) { return std::uint64_t{id.generation} << 32 | id.index; }
inline RegionId region_of(const Heap& heap, Slot slot) {
  const std::uint64_t owner = heap.owner(slot);
  return {static_cast<std::uint32_t>(owner), static_cast<std::uint32_t>(owner >> 32)};
}

struct Object {
  Object(Bytes bytes, RegionId region) : size(bytes), primary(region) {}

  Bytes size;
  RegionId primary;
  std::uint64_t version = 1;  ///< version of its contents; each write makes a new one
  std::uint32_t readers = 0;
  bool writer = false;
  bool retired = false;  ///< by hint: pins are refused, and the policy decides when its regions are freed
  bool ending = false;   ///< its regions are freed as soon as no pin or copy uses them
  std::shared_ptr<ObjectCopy> copy;

  bool pinned() const { return readers > 0 || writer; }
};

struct ManagerCore {
  ManagerCore(std::vector<std::unique_ptr<Tier>> tiers, std::unique_ptr<Policy> policy, MoverOptions options);

  std::mutex mutex;
  std::condition_variable released;  ///< a pin was dropped, a copy finished or an object ended
  std::uint32_t waiting = 0;         ///< threads waiting for `released`

  std::vector<std::unique_ptr<Tier>> tiers;
  std::vector<Heap> heaps;
  SlotMap<ObjectId, Object> objects;
  SlotMap<RegionId, RegionEntry> regions;
  RegionObserver* observer = nullptr;
  std::unique_ptr<Policy> policy;  // may hold regions, so it is destroyed before them
  std::unique_ptr<Mover> mover;
  std::vector<std::shared_ptr<ObjectCopy>> in_flight;  // destroyed before the mover

  std::uint64_t copies = 0, evictions = 0, promotions = 0, failed_copies = 0;
  std::string last_failure;
  Seconds waited{0};

  using Lock = std::unique_lock<std::mutex>;
  Regions make_regions(Lock& lock) { return {*this, lock}; }

  Result<ObjectId> create(Lock& lock, Bytes size);
  Result<Pin> pin(Lock& lock, ObjectId id, Access access);
  void unpin(const Pin& pin);

  /// Frees an object's regions, now or when the last pin or copy ends.
  void end(ObjectId id, Object& object);
  void detach(RegionId id);   ///< takes a secondary out of its object's ring
  void release(RegionId id);  ///< frees an unlinked region
  void tell_gained(const RegionEntry& entry);
  void tell_lost(const RegionEntry& entry);

  std::shared_ptr<ObjectCopy> start(RegionId to, RegionId from, Priority priority);
  /// Copies and returns when that is complete; rethrows its failure. The lock is released meanwhile.
  void copy_now(Lock& lock, RegionId to, RegionId from);
  /// Waits, with the lock released, until a copy is complete.
  void wait(Lock& lock, const std::shared_ptr<ObjectCopy>& copy);
  /// Records the outcome of a complete copy, once.
  void finish(Lock& lock, const std::shared_ptr<ObjectCopy>& copy);
  /// Waits for every copy that is in progress now.
  void wait_for_all(Lock& lock);
  /// Finishes the copies that have completed in the background.
  void reap(Lock& lock);
  void note_failure(const char* message);

  std::byte* address(TierId tier, Slot slot);  ///< nullptr where the tier has no memory
  Extent extent(RegionId id, Bytes size);
  /// Moves a region within its tier for compaction; returns false if it has to stay.
  bool slide(TierId tier, std::uint64_t from, std::uint64_t to, Bytes size);
  Result<void> validate();

 private:
  ObjectId adopt(Regions& regions_now, Bytes size, Region region);
  Result<void> fetch(Lock& lock, ObjectId id, Access access);
  Pin take_pin(Lock& lock, ObjectId id, Object& object, RegionEntry& primary, Access access);
  void let_go(const Pin& pin);
  void end_now(ObjectId id, Object& object);
  void wait_for_release(Lock& lock);
  void wait_for_transfer(Lock& lock, ObjectCopy& copy);
  void notify();
};

/// An operation that fails for lack of room may succeed once a copy in progress completes. This waits for at
/// most as many copies as were in progress at the beginning, so that copies started by other threads cannot
/// block a caller for ever.
class BoundedWait {
 public:
  explicit BoundedWait(ManagerCore& core) : core_(core), left_(core.in_flight.size()) {}
  /// Waits for a copy; returns false if waiting cannot help.
  bool wait(ManagerCore::Lock& lock, const Error& why);

 private:
  ManagerCore& core_;
  std::size_t left_;
};

}  // namespace terrace

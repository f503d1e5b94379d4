#include "manager/core.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "base/clock.hpp"

namespace terrace {

ManagerCore::ManagerCore(std::vector<std::unique_ptr<Tier>> given, std::unique_ptr<Policy> chosen,
                         MoverOptions options)
    : tiers(std::move(given)), policy(std::move(chosen)) {
  check(!tiers.empty(), "a manager needs at least one tier");
  check(policy != nullptr, "a manager needs a policy");
  std::vector<Tier*> borrowed;
  for (const auto& tier : tiers) {
    const TierDescription& about = tier->description();
    check(options.rehearsal || about.addressable == (tier->memory() != nullptr),
          "a tier says of itself whether it is addressable");
    heaps.emplace_back(about.capacity, about.granularity);
    borrowed.push_back(tier.get());
  }
  mover = std::make_unique<Mover>(std::move(borrowed), std::move(options));
}

Result<ObjectId> ManagerCore::create(Lock& lock, Bytes size) {
  if (size.count == 0) {
    return Error{ErrorCode::invalid_argument, "an object of 0 bytes was asked for: ask for at least 1"};
  }
  Bytes largest;
  for (const Heap& heap : heaps) largest = std::max(largest, heap.statistics().capacity);
  if (size > largest) {
    return Error{
        ErrorCode::too_large,
        fmt::format("an object of {} is larger than every tier (the largest has {}): add a larger tier or "
                    "split the object",
                    readable(size), readable(largest))};
  }
  Regions regions_now = make_regions(lock);
  Result<Region> region = policy->place(regions_now, size);
  for (BoundedWait bounded_wait(*this); !region && bounded_wait.wait(lock, region.error());) {
    region = policy->place(regions_now, size);
  }
  if (!region) return region.error();
  return adopt(regions_now, size, std::move(*region));
}

ObjectId ManagerCore::adopt(Regions& regions_now, Bytes size, Region region) {
  RegionEntry& entry = regions[region.id()];
  check(heaps[entry.tier.index].size(entry.slot) >= size, "a policy placed an object in too small a region");
  const ObjectId id = objects.insert(Object(size, region.id()));
  region.core_ = nullptr;  // the object owns it from here on
  entry.object = id;
  entry.linked = true;
  entry.sibling = objects[id].primary;
  entry.version = objects[id].version;
  tell_gained(entry);
  try {
    policy->created(regions_now, id);
  } catch (...) {
    end_now(id, objects[id]);  // its id was not returned to anyone
    throw;
  }
  return id;
}

Result<Pin> ManagerCore::pin(Lock& lock, ObjectId id, Access access) {
  std::optional<BoundedWait> bounded_wait;
  while (true) {
    Object* object = objects.find(id);
    if (object == nullptr || object->retired || object->ending) {
      return Error{ErrorCode::retired, "the object was retired or destroyed: its contents are gone"};
    }
    RegionEntry& primary = regions[object->primary];
    const bool addressable = primary.addressable;
    if (object->writer || (access == Access::write && object->readers > 0)) {
      wait_for_release(lock);
    } else if (object->copy != nullptr && (access == Access::write || !addressable)) {
      wait(lock, object->copy);
    } else if (addressable) {
      return take_pin(lock, id, *object, primary, access);
    } else if (const Result<void> fetched = fetch(lock, id, access); !fetched) {
      if (!bounded_wait) bounded_wait.emplace(*this);
      if (!bounded_wait->wait(lock, fetched.error())) return fetched.error();
    }
  }
}

Result<void> ManagerCore::fetch(Lock& lock, ObjectId id, Access access) {
  Regions regions_now = make_regions(lock);
  Result<void> fetched = policy->fetch(regions_now, id, access);
  Object* object = objects.find(id);
  const bool settled = object != nullptr && object->copy == nullptr && !object->writer && !object->ending;
  check(!fetched || !settled || regions[object->primary].addressable,
        "a policy's fetch succeeded and the object is still not addressable");
  return fetched;
}

Pin ManagerCore::take_pin(Lock& lock, ObjectId id, Object& object, RegionEntry& primary, Access access) {
  Pin pin;
  pin.object_ = id;
  pin.access_ = access;
  pin.data_ = primary.data;
  pin.size_ = object.size;
  pin.tier_ = primary.tier;
  if (access == Access::read) {
    ++object.readers;
  } else {
    object.writer = true;
    primary.version = ++object.version;
  }
  Regions regions_now = make_regions(lock);
  try {
    policy->touched(regions_now, id, access);
  } catch (...) {
    let_go(pin);
    throw;
  }
  pin.core_ = this;
  return pin;
}

void ManagerCore::unpin(const Pin& pin) {
  const Lock lock(mutex);
  let_go(pin);
}

void ManagerCore::let_go(const Pin& pin) {
  Object& object = objects[pin.object_];
  if (pin.access_ == Access::read) {
    --object.readers;
  } else {
    object.writer = false;
  }
  if (object.ending) end(pin.object_, object);
  notify();
}

void ManagerCore::wait_for_release(Lock& lock) {
  ++waiting;
  released.wait(lock);
  --waiting;
}

void ManagerCore::notify() {
  if (waiting > 0) released.notify_all();
}

void ManagerCore::end(ObjectId id, Object& object) {
  if (!object.ending) policy->forgotten(id);
  object.ending = true;
  if (!object.pinned() && object.copy == nullptr) end_now(id, object);
}

void ManagerCore::end_now(ObjectId id, Object& object) {
  RegionId region = object.primary;
  do {
    const RegionId next = regions[region].sibling;
    tell_lost(regions[region]);
    release(region);
    region = next;
  } while (region != object.primary);
  objects.erase(id);
  notify();
}

void ManagerCore::detach(RegionId id) {
  RegionEntry& entry = regions[id];
  const Object& object = objects[entry.object];
  check(id != object.primary, "a primary cannot leave its object: set another first");
  check(object.copy == nullptr || (object.copy->to != id && object.copy->from != id),
        "a copy uses this region");
  RegionId before = entry.sibling;
  while (regions[before].sibling != id) before = regions[before].sibling;
  regions[before].sibling = entry.sibling;
  entry.linked = false;
  tell_lost(entry);
}

void ManagerCore::release(RegionId id) {
  const RegionEntry& entry = regions[id];
  heaps[entry.tier.index].free(entry.slot);
  regions.erase(id);
}

std::shared_ptr<ObjectCopy> ManagerCore::start(RegionId to, RegionId from, Priority priority) {
  RegionEntry& target = regions[to];
  const RegionEntry& source = regions[from];
  check(target.linked && source.linked && target.object == source.object, "a copy stays within one object");
  Object& object = objects[target.object];
  check(object.copy == nullptr, "a copy of this object is in progress");
  check(!object.writer, "the object is being written");
  check(source.version == object.version, "a stale region was to be copied from");
  check(to != object.primary, "a primary was to be copied to");

  auto copy = std::make_shared<ObjectCopy>();
  copy->object = target.object;
  copy->from = from;
  copy->to = to;
  copy->version = source.version;
  copy->background = priority == Priority::background;
  target.version = 0;
  // The target's padding may be overwritten, so that a disk need not read its last block first.
  copy->transfer = mover->start(
      {Move{extent(from, object.size), extent(to, heaps[target.tier.index].size(target.slot))}}, priority);
  if (observer != nullptr) observer->copying(target.object, source.tier, target.tier);
  object.copy = copy;
  in_flight.push_back(copy);
  ++copies;
  return copy;
}

void ManagerCore::wait(Lock& lock, const std::shared_ptr<ObjectCopy>& given) {
  if (given->finished) return;
  const std::shared_ptr<ObjectCopy> copy =
      given;  // the object may release its own reference while the lock is released
  const Clock::Time began = steady_clock().now();
  if (copy->background) {
    wait_for_transfer(lock, *copy);
    finish(lock, copy);
  } else {
    // The thread that started the copy finishes it and continues under the same lock, so that no other thread
    // intervenes.
    while (!copy->finished) wait_for_release(lock);
  }
  waited += steady_clock().now() - began;
}

void ManagerCore::wait_for_transfer(Lock& lock, ObjectCopy& copy) {
  lock.unlock();
  try {
    copy.transfer.wait();
  } catch (const std::exception&) {
    // finish() meets the same error again and records it.
  }
  lock.lock();
}

void ManagerCore::copy_now(Lock& lock, RegionId to, RegionId from) {
  const Clock::Time began = steady_clock().now();
  const std::shared_ptr<ObjectCopy> copy = start(to, from, Priority::urgent);
  wait_for_transfer(lock, *copy);
  finish(lock, copy);
  waited += steady_clock().now() - began;
  if (copy->error) std::rethrow_exception(copy->error);
}

void ManagerCore::finish(Lock& lock, const std::shared_ptr<ObjectCopy>& copy) {
  if (copy->finished) return;
  copy->finished = true;
  try {
    copy->transfer.wait();
  } catch (const std::exception& failure) {
    copy->error = std::current_exception();
    note_failure(failure.what());
  }
  std::erase(in_flight, copy);
  Object& object = objects[copy->object];
  object.copy = nullptr;
  if (!copy->error) regions[copy->to].version = copy->version;
  if (object.ending) {
    end(copy->object, object);
  } else if (copy->background) {
    Regions regions_now = make_regions(lock);
    policy->copied(regions_now, copy->object, copy->to);
  }
  notify();
}

void ManagerCore::wait_for_all(Lock& lock) {
  const std::vector<std::shared_ptr<ObjectCopy>> now = in_flight;  // later ones are not waited for
  for (const std::shared_ptr<ObjectCopy>& copy : now) wait(lock, copy);
}

bool BoundedWait::wait(ManagerCore::Lock& lock, const Error& why) {
  const bool final = why.code != ErrorCode::tier_full && why.code != ErrorCode::pinned;
  if (final || left_ == 0 || core_.in_flight.empty()) return false;
  --left_;
  core_.wait(lock, core_.in_flight.front());
  return true;
}

void ManagerCore::reap(Lock& lock) {
  for (std::size_t i = 0; i < in_flight.size();) {
    const std::shared_ptr<ObjectCopy> copy = in_flight[i];
    if (copy->background && copy->transfer.done()) {
      finish(lock, copy);
      i = 0;  // start over, because the policy may have started or ended other copies
    } else {
      ++i;
    }
  }
}

void ManagerCore::tell_gained(const RegionEntry& entry) {
  if (observer == nullptr) return;
  observer->gained(entry.object, entry.tier, heaps[entry.tier.index].offset(entry.slot));
}

void ManagerCore::tell_lost(const RegionEntry& entry) {
  if (observer != nullptr) observer->lost(entry.object, entry.tier);
}

void ManagerCore::note_failure(const char* message) {
  ++failed_copies;
  last_failure = message;
}

std::byte* ManagerCore::address(TierId tier, Slot slot) {
  std::byte* memory = tiers[tier.index]->memory();
  return memory == nullptr ? nullptr : memory + heaps[tier.index].offset(slot);
}

Extent ManagerCore::extent(RegionId id, Bytes size) {
  const RegionEntry& entry = regions[id];
  return {entry.tier, heaps[entry.tier.index].offset(entry.slot), size};
}

}  // namespace terrace

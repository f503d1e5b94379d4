// The four modes of CachedArrays (003 section IV): none, L, LM, LMP. All movement is synchronous, as in the
// paper.
#include "manager/policies/policies.hpp"

namespace terrace {
namespace {

class CachedArrays final : public RecencyPolicy {
 public:
  explicit CachedArrays(CachedArraysMode mode) : mode_(mode) {}

  // L: a new object needs no region in slow memory. Without it the first use is a compulsory miss, as in a
  // cache.
  Result<Region> place(Regions& regions, Bytes size) override {
    const TierId first = mode_.local ? kFastest : slowest(regions);
    Result<Region> region = place_at(regions, first, size);
    if (!region && collect(regions)) region = place_at(regions, first, size);
    return region;
  }

  Result<void> fetch(Regions& regions, ObjectId object, Access access) override {
    Result<void> fetched = RecencyPolicy::fetch(regions, object, access);
    if (!fetched && collect(regions) && regions.alive(object))
      fetched = RecencyPolicy::fetch(regions, object, access);
    return fetched;
  }

  // P: slow memory has good read bandwidth, so prefetching an object that is only read may cost more than it
  // gains.
  void will_read(Regions& regions, ObjectId object) override {
    recency_.touch(object);
    if (mode_.prefetch) (void)fetch_to(regions, object, kFastest);
  }

  void will_write(Regions& regions, ObjectId object) override {
    recency_.touch(object);
    (void)fetch_to(regions, object, kFastest);
  }

  void archive(Regions&, ObjectId object) override { recency_.archive(object); }

  // M: without it dead objects stay until a collection, and are written to slow memory on eviction.
  void retire(Regions& regions, ObjectId object) override {
    if (mode_.eager) {
      regions.retire(object);
    } else {
      garbage_.push_back(object);
    }
  }

  void forgotten(ObjectId object) override {
    std::erase(garbage_, object);
    RecencyPolicy::forgotten(object);
  }

  void step_end(Regions& regions) override {
    collect(regions);
    regions.compact(kFastest);
  }

 private:
  bool collect(Regions& regions) {
    const std::vector<ObjectId> dead = std::exchange(garbage_, {});
    for (const ObjectId object : dead) {
      if (regions.alive(object)) regions.retire(object);
    }
    return !dead.empty();
  }

  CachedArraysMode mode_;
  std::vector<ObjectId> garbage_;
};

}  // namespace

std::unique_ptr<Policy> make_cached_arrays(CachedArraysMode mode) {
  return std::make_unique<CachedArrays>(mode);
}

}  // namespace terrace

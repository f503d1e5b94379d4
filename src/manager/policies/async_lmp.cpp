// This is LMP with prefetch and eviction in the background, which 003 only estimates (its Fig. 7).
//
// Cold objects are written back before their room is needed: each then is clean, and evicting it copies
// nothing. A hint starts the copy to fast memory and returns; the pin that needs the object waits for the
// rest of the copy. Hints should come early, a layer ahead or more. Where the background was too slow,
// RecencyPolicy evicts and fetches synchronously.
#include <algorithm>

#include "manager/policies/policies.hpp"

namespace terrace {
namespace {

class AsyncLmp final : public RecencyPolicy {
 public:
  Result<Region> place(Regions& regions, Bytes size) override {
    for (int patience = 16; !reclaim(regions, size) && patience > 0 && regions.wait_for_copy(); --patience) {
    }
    Result<Region> region = place_at(regions, kFastest, size);
    write_back(regions);
    return region;
  }

  void will_read(Regions& regions, ObjectId object) override { expect(regions, object); }
  void will_write(Regions& regions, ObjectId object) override { expect(regions, object); }

  void archive(Regions& regions, ObjectId object) override {
    set_expected(object, false);
    recency_.archive(object);
    write_back(regions);
  }

  void layer_end(Regions& regions) override { write_back(regions); }

  void step_end(Regions& regions) override {
    regions.wait_for_copies();
    regions.compact(kFastest);
  }

  void touched(Regions& regions, ObjectId object, Access access) override {
    set_expected(object, false);
    RecencyPolicy::touched(regions, object, access);
  }

  void copied(Regions& regions, ObjectId object, RegionId to) override {
    const bool upwards = regions.tier(to) < regions.tier(regions.primary(object));
    if (!upwards) return;
    if (regions.stale(to)) {
      regions.free(to);
    } else if (regions.movable(object)) {
      regions.set_primary(object, to);
    }
  }

  void forgotten(ObjectId object) override {
    set_expected(object, false);
    RecencyPolicy::forgotten(object);
  }

 private:
  // This fraction of fast memory is kept free or clean.
  static constexpr std::uint64_t kHeadroomShare = 4;

  void expect(Regions& regions, ObjectId object) {
    recency_.touch(object);
    set_expected(object, true);
    const RegionId primary = regions.primary(object);
    if (regions.tier(primary) == kFastest || regions.copying(object)) return;
    if (const auto there = regions.linked(primary, kFastest)) return promote(regions, object, *there);
    if (!reclaim(regions, regions.size(object))) return;
    if (Result<Region> room = regions.allocate(kFastest, regions.size(object))) {
      promote(regions, object, regions.link(primary, std::move(*room)));
    }
  }

  void promote(Regions& regions, ObjectId object, RegionId to) {
    if (!regions.stale(to)) {
      if (regions.movable(object)) regions.set_primary(object, to);
    } else if (!regions.writing(object)) {
      regions.start_copy(to, regions.primary(object));
    }
  }

  // Makes a hole by evicting clean objects that no hint expects, without copying.
  bool reclaim(Regions& regions, Bytes size) {
    if (regions.largest_hole(kFastest) >= size) return true;
    const auto victim =
        recency_.coldest(kFastest, [&](ObjectId object) { return spare(regions, object).has_value(); });
    if (!victim) return false;
    return regions
        .evict_from(kFastest, regions.primary(*victim), size,
                    [&](RegionId region) { return drop(regions, region); })
        .ok();
  }

  bool drop(Regions& regions, RegionId region) {
    const auto object = regions.parent(region);
    if (!object || !regions.alive(*object) || regions.primary(*object) != region) return false;
    const auto below = spare(regions, *object);
    if (!below) return false;
    regions.set_primary(*object, *below);
    regions.free(region);
    return true;
  }

  // Returns the current slower region that allows the fast one to be freed, if there is one and no hint
  // expects the object.
  std::optional<RegionId> spare(Regions& regions, ObjectId object) {
    if (!regions.movable(object) || expected(object)) return std::nullopt;
    return clean_below(regions, object);
  }

  static std::optional<RegionId> clean_below(Regions& regions, ObjectId object) {
    const RegionId primary = regions.primary(object);
    for (TierId tier{regions.tier(primary).index + 1}; tier.index < regions.tiers(); ++tier.index) {
      const auto below = regions.linked(primary, tier);
      if (below && !regions.stale(*below)) return below;
    }
    return std::nullopt;
  }

  // Starts write-backs of cold objects until enough of fast memory is free, clean or being written back.
  void write_back(Regions& regions) {
    const Bytes goal = regions.description(kFastest).capacity / kHeadroomShare;
    Bytes ready = regions.free_bytes(kFastest);
    if (ready >= goal) return;
    recency_.coldest(kFastest, [&](ObjectId object) {
      const bool counts =
          regions.copying(object) || (!expected(object) && !regions.writing(object) &&
                                      (clean_below(regions, object) || start_write_back(regions, object)));
      if (counts) ready += regions.size(object);
      return ready >= goal;
    });
  }

  static bool start_write_back(Regions& regions, ObjectId object) {
    const RegionId primary = regions.primary(object);
    for (TierId tier{1}; tier.index < regions.tiers(); ++tier.index) {
      std::optional<RegionId> to = regions.linked(primary, tier);
      if (!to) {
        Result<Region> room = regions.allocate(tier, regions.size(object));
        if (!room) continue;
        to = regions.link(primary, std::move(*room));
      }
      regions.start_copy(*to, primary);
      return true;
    }
    return false;
  }

  bool expected(ObjectId object) const { return object.index < expected_.size() && expected_[object.index]; }
  void set_expected(ObjectId object, bool is) {
    if (object.index >= expected_.size()) expected_.resize(object.index + 1);
    expected_[object.index] = is;
  }

  std::vector<bool> expected_;  // whether an object, by index, was hinted and not yet used
};

}  // namespace

std::unique_ptr<Policy> make_async_lmp() { return std::make_unique<AsyncLmp>(); }

}  // namespace terrace

// Plain LRU on demand: an object that is about to be used is moved to the fastest tier, and the least
// recently used objects are evicted. It ignores hints about the future such as archive.
#include "manager/policies/policies.hpp"

namespace terrace {
namespace {

class Lru final : public RecencyPolicy {
 public:
  Result<Region> place(Regions& regions, Bytes size) override { return place_at(regions, kFastest, size); }
  void will_read(Regions& regions, ObjectId object) override { demand(regions, object); }
  void will_write(Regions& regions, ObjectId object) override { demand(regions, object); }

 private:
  void demand(Regions& regions, ObjectId object) {
    recency_.touch(object);
    (void)fetch_to(regions, object, kFastest);
  }
};

}  // namespace

std::unique_ptr<Policy> make_lru() { return std::make_unique<Lru>(); }

}  // namespace terrace

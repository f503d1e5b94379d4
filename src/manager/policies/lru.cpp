// Plain LRU on demand: whatever is about to be used comes to the fastest tier, the least recently used makes
// way. It knows nothing of the future: archive is ignored.
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
    (void)bring(regions, object, kFastest);
  }
};

}  // namespace

std::unique_ptr<Policy> make_lru() { return std::make_unique<Lru>(); }

}  // namespace terrace

// First touch: an object stays where it was first placed, as pages do on a NUMA machine without migration.
#include "manager/policies/policies.hpp"

namespace terrace {
namespace {

class FirstTouch final : public RecencyPolicy {
 public:
  Result<Region> place(Regions& regions, Bytes size) override {
    for (TierId tier = kFastest; tier < slowest(regions); ++tier.index) {
      if (Result<Region> region = regions.allocate(tier, size)) return region;
    }
    return place_at(regions, slowest(regions), size);
  }
};

}  // namespace

std::unique_ptr<Policy> make_first_touch() { return std::make_unique<FirstTouch>(); }

}  // namespace terrace

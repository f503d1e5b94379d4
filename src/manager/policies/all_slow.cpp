// All slow: every object lives in the slowest tier and is used there; it is fetched only if that tier is not
// addressable.
#include "manager/policies/policies.hpp"

namespace terrace {
namespace {

class AllSlow final : public RecencyPolicy {
 public:
  Result<Region> place(Regions& regions, Bytes size) override {
    return place_at(regions, slowest(regions), size);
  }
};

}  // namespace

std::unique_ptr<Policy> make_all_slow() { return std::make_unique<AllSlow>(); }

}  // namespace terrace

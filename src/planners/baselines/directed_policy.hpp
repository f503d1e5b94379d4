// SPDX-License-Identifier: Apache-2.0
// A policy that leaves every decision to another one, except for two that a rehearsal of one step makes
// itself: where a tensor that outlives steps lies before the step, and extra work between two kernels (an
// errand). Not thread-safe: set the members between calls of the manager.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "terrace/policy.hpp"

namespace terrace {

class DirectedPolicy final : public Policy {
 public:
  explicit DirectedPolicy(std::unique_ptr<Policy> decides) : decides_(std::move(decides)) {}

  std::optional<TierId> tier_for_new;    ///< where new objects go; none: the policy decides
  std::function<void(Regions&)> errand;  ///< done once, in place of the next layer_end()

  /// Places the object in the given tier, else in a slower tier, else in a faster one, and evicts nothing for
  /// it.
  Result<Region> place(Regions& regions, Bytes size) override {
    if (!tier_for_new) return decides_->place(regions, size);
    Result<Region> region = regions.allocate(*tier_for_new, size);
    for (TierId tier{tier_for_new->index + 1}; !region && tier.index < regions.tiers(); ++tier.index)
      region = regions.allocate(tier, size);
    for (std::uint32_t tier = tier_for_new->index; !region && tier-- > 0;)
      region = regions.allocate({tier}, size);
    return region;
  }
  void layer_end(Regions& regions) override {
    if (!errand) return decides_->layer_end(regions);
    std::exchange(errand, nullptr)(regions);
  }

  Result<void> fetch(Regions& regions, ObjectId object, Access access) override {
    return decides_->fetch(regions, object, access);
  }
  void will_use(Regions& regions, ObjectId object) override { decides_->will_use(regions, object); }
  void will_read(Regions& regions, ObjectId object) override { decides_->will_read(regions, object); }
  void will_write(Regions& regions, ObjectId object) override { decides_->will_write(regions, object); }
  void archive(Regions& regions, ObjectId object) override { decides_->archive(regions, object); }
  void retire(Regions& regions, ObjectId object) override { decides_->retire(regions, object); }
  void step_begin(Regions& regions) override { decides_->step_begin(regions); }
  void step_end(Regions& regions) override { decides_->step_end(regions); }
  void created(Regions& regions, ObjectId object) override { decides_->created(regions, object); }
  void touched(Regions& regions, ObjectId object, Access access) override {
    decides_->touched(regions, object, access);
  }
  void moved(Regions& regions, ObjectId object) override { decides_->moved(regions, object); }
  void copied(Regions& regions, ObjectId object, RegionId to) override {
    decides_->copied(regions, object, to);
  }
  void forgotten(ObjectId object) override { decides_->forgotten(object); }

 private:
  std::unique_ptr<Policy> decides_;
};

}  // namespace terrace

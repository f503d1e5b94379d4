// A policy that lets a test act through Regions as a policy would; everything else is as in RecencyPolicy.
#pragma once

#include <functional>

#include "terrace/manager.hpp"
#include "terrace/recency_policy.hpp"

namespace terrace {

class ProbePolicy final : public RecencyPolicy {
 public:
  Result<Region> place(Regions& regions, Bytes size) override { return place_at(regions, first, size); }
  void step_begin(Regions& regions) override { action(regions); }
  void copied(Regions& regions, ObjectId object, RegionId to) override {
    if (on_copied) on_copied(regions, object, to);
  }

  void touched(Regions& regions, ObjectId object, Access access) override {
    if (on_touched) on_touched();
    RecencyPolicy::touched(regions, object, access);
  }

  TierId first{0};
  std::function<void()> on_touched;
  std::function<void(Regions&)> action;
  std::function<void(Regions&, ObjectId, RegionId)> on_copied;
};

/// A manager whose policy the test controls.
struct Probe {
  explicit Probe(std::vector<std::unique_ptr<Tier>> tiers, MoverOptions options = {}) {
    auto owned = std::make_unique<ProbePolicy>();
    policy = owned.get();
    manager = std::make_unique<Manager>(std::move(tiers), std::move(owned), std::move(options));
  }

  void act(std::function<void(Regions&)> action) {
    policy->action = std::move(action);
    manager->step_begin();
  }

  ProbePolicy* policy;
  std::unique_ptr<Manager> manager;
};

}  // namespace terrace

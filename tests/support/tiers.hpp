// Small tiers for tests, opened from real specs or from fakes whose faults the test controls.
#pragma once

#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

#include "terrace/tier.hpp"
#include "tiers/fake.hpp"

namespace terrace {

inline std::vector<std::unique_ptr<Tier>> open_tiers(std::initializer_list<std::string_view> specs) {
  std::vector<std::unique_ptr<Tier>> tiers;
  for (const std::string_view spec : specs) tiers.push_back(open_tier(spec).value());
  return tiers;
}

/// pre: that tier was opened from a `fake` spec.
inline FakeTier& as_fake(Tier& tier) { return dynamic_cast<FakeTier&>(tier); }

}  // namespace terrace

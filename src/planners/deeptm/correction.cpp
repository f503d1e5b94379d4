// SPDX-License-Identifier: Apache-2.0
#include "planners/deeptm/correction.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace terrace::deeptm {

Profile corrected(const Graph& graph, const Profile& profile, const Plan& plan, const Timeline& executed) {
  check(executed.instructions.size() == plan.instructions.size(), "every instruction has its interval");
  check(profile.kernels.size() == graph.kernels.size(), "the profile is of the graph");
  Profile made = profile;
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    const auto* run = std::get_if<Run>(&plan.instructions[i]);
    if (run == nullptr) continue;
    auto& places = made.kernels[run->kernel.index].variants[run->variant];
    auto place = std::find_if(places.begin(), places.end(),
                              [&](const PlacedTime& one) { return one.tiers == run->tiers; });
    if (place == places.end()) place = places.insert(places.end(), PlacedTime{run->tiers});
    place->cold = place->warm = executed.instructions[i].length();
    place->samples = std::max(place->samples, 1U);
  }
  return made;
}

}  // namespace terrace::deeptm

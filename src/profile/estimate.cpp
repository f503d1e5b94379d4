#include <algorithm>

#include "base/fingerprint.hpp"
#include "profile/roofline.hpp"
#include "terrace/graph.hpp"
#include "terrace/profile.hpp"

namespace terrace {
namespace {

PlacedTime estimated(const Kernel& kernel, std::size_t variant, Seconds bound) {
  PlacedTime placed;
  placed.tiers.assign(operand_count(kernel), TierId{0});
  const bool known = variant < kernel.variants.size() && kernel.variants[variant].time;
  placed.cold = placed.warm = known ? *kernel.variants[variant].time : bound;
  return placed;
}

void add(Fingerprint& hash, const PlacedTime& placed) {
  hash.add(placed.tiers.size());
  for (const TierId tier : placed.tiers) hash.add(tier.index);
  for (const Seconds time : {placed.cold, placed.warm, placed.spread}) hash.add(time.count());
  hash.add(placed.samples);
}

}  // namespace

Profile estimate(const Graph& graph, const Machine& machine) {
  Profile profile{fingerprint(graph), fingerprint(machine), {}};
  profile.kernels.reserve(graph.kernels.size());
  for (const Kernel& kernel : graph.kernels) {
    const Seconds bound = roofline(graph, kernel, machine);
    auto& variants = profile.kernels.emplace_back().variants;
    for (std::size_t v = 0; v < variant_count(kernel); ++v) variants.push_back({estimated(kernel, v, bound)});
  }
  return profile;
}

bool Profile::is_measured() const {
  const auto measured = [](const std::vector<PlacedTime>& places) {
    return !places.empty() && places.front().samples > 0;
  };
  return !kernels.empty() && std::all_of(kernels.begin(), kernels.end(), [&](const KernelProfile& kernel) {
    return std::all_of(kernel.variants.begin(), kernel.variants.end(), measured);
  });
}

std::string fingerprint(const Profile& profile) {
  Fingerprint hash;
  hash.add(profile.graph);
  hash.add(profile.machine);
  for (const KernelProfile& kernel : profile.kernels) {
    hash.add(kernel.variants.size());
    for (const auto& places : kernel.variants) {
      hash.add(places.size());
      for (const PlacedTime& placed : places) add(hash, placed);
    }
    hash.add(kernel.operands.size());
    for (const Accesses& counted : kernel.operands)
      hash.add(counted.reads).add(counted.writes).add(counted.pages);
  }
  return hash.text();
}

}  // namespace terrace

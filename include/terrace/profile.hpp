// A profile: how long every kernel of a graph takes on a machine, by variant and by where its operands lie.
//
// Times are measured (`measure`, src/profile/) or estimated from the machine's description by a roofline:
// the larger of work over the arithmetic rate and, over all tiers, bytes over the tier's rate. Plain data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "terrace/graph.hpp"
#include "terrace/machine.hpp"

namespace terrace {

/// One variant of one kernel with its operands in these tiers.
struct PlacedTime {
  std::vector<TierId> tiers;  ///< of its inputs, its outputs and its workspace, in this order
  Seconds cold{0};            ///< operands not in any cache
  Seconds warm{0};            ///< operands just used
  Seconds spread{0};          ///< half of the 95% confidence interval of `cold`
  std::uint32_t samples = 0;  ///< 0: estimated
  bool operator==(const PlacedTime&) const = default;
};

struct KernelProfile {
  std::vector<std::vector<PlacedTime>> variants;  ///< by variant; the first entry has all operands in tier 0
  bool operator==(const KernelProfile&) const = default;
};

struct Profile {
  std::string graph, machine;  ///< fingerprints
  std::vector<KernelProfile> kernels;
  bool operator==(const Profile&) const = default;

  bool is_measured() const;
};

std::string fingerprint(const Profile& profile);

/// Every kernel by the machine's roofline; times that come with the graph's variants are taken instead.
Profile estimate(const Graph& graph, const Machine& machine);

/// How long a kernel takes: what was measured for exactly these tiers, else what was measured in tier 0 plus
/// what reading and writing its operands where they lie takes longer. Borrows graph, machine and profile.
class KernelClock {
 public:
  KernelClock(const Graph& graph, const Machine& machine, const Profile& profile);
  Seconds time(KernelId kernel, std::uint32_t variant, std::span<const TierId> tiers) const;
  /// With all operands in tier 0, the fastest variant.
  Seconds fast(KernelId kernel) const { return fast_[kernel.index]; }
  /// The sum of fast() over all kernels.
  Seconds fast_step() const { return fast_step_; }

 private:
  const Graph& graph_;
  const Machine& machine_;
  const Profile& profile_;
  std::vector<Seconds> fast_;
  Seconds fast_step_{0};
};

}  // namespace terrace

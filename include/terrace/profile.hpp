// SPDX-License-Identifier: Apache-2.0
// A profile: how long every kernel of a graph takes on a machine, by variant and by where its operands lie,
// and how often it reads and writes each of them.
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

/// How often one run of a kernel sweeps over one operand in memory: pages that were touched, as often as a
/// cache had to fetch them, over pages of the operand. Operands that are the same tensor have the same.
struct Accesses {
  double reads = 0, writes = 0;
  std::uint64_t pages = 0;  ///< that were watched; 0: not counted but taken from the graph
  bool operator==(const Accesses&) const = default;
};

/// By kernel, then by operand: inputs, outputs, workspace.
using KernelAccesses = std::vector<std::vector<Accesses>>;

struct KernelProfile {
  /// By variant. The first entry has all operands in tier 0, others lie elsewhere: those that were measured.
  std::vector<std::vector<PlacedTime>> variants;
  std::vector<Accesses> operands = {};  ///< inputs, outputs, workspace; empty: not counted
  bool operator==(const KernelProfile&) const = default;
};

struct Profile {
  std::string graph, machine;  ///< fingerprints
  std::vector<KernelProfile> kernels;
  bool operator==(const Profile&) const = default;

  /// Returns whether every variant of every kernel was measured with its operands in tier 0.
  bool is_measured() const;
};

std::string fingerprint(const Profile& profile);

/// Returns what the graph says of an operand: one read of an input, one write of an output, both of a tensor
/// that is both and of a workspace. pre: operand is below the number of the kernel's inputs, outputs and
/// workspace
Accesses assumed_accesses(const Graph& graph, KernelId kernel, std::size_t operand);
/// Returns what was counted of an operand, else what the graph says. pre: as above; the profile is of the
/// graph
Accesses accesses(const Graph& graph, const Profile& profile, KernelId kernel, std::size_t operand);

/// Estimates every kernel by the machine's roofline; times that come with the graph's variants are taken
/// instead. pre: a valid graph and machine
Profile estimate(const Graph& graph, const Machine& machine);

/// Returns how much of what a kernel touches, from 0 to 1, the kernel before it in the graph's order has not:
/// what is not in a cache when it starts. A caller that reorders kernels accepts the share of the graph's
/// order.
double cold_share(const Graph& graph, KernelId kernel);

/// Returns what a kernel takes within a step: warm for what the kernel before it touched, cold for the rest.
/// Operands too large for the caches are cold in both measurements, so that no rule about sizes is needed.
Seconds in_step(const PlacedTime& placed, double cold_share);

/// How long a kernel takes: what was measured for exactly these tiers, else the longest of what was measured
/// in tier 0 and, for each other tier, reading and writing all operands that lie there. Never less than in
/// tier 0, which is the fastest: bounds rest on that, and what was measured below it is noise. Profiles are
/// of engine 0; on another one a kernel takes as much longer as that engine's rate for the type of its
/// operands is lower. Borrows the profile, whose graph and machine are not needed once it is made. Constant:
/// any number of threads may ask.
class KernelClock {
 public:
  /// pre: the profile has every kernel and variant of the graph, with all operands in tier 0 first
  KernelClock(const Graph& graph, const Machine& machine, const Profile& profile);
  /// `tiers`: of its inputs, its outputs and its workspace, in this order.
  Seconds time(KernelId kernel, std::uint32_t variant, std::span<const TierId> tiers,
               EngineId engine = {}) const;
  /// Returns how long reading and writing one operand in this tier takes when nothing else happens.
  Seconds access(KernelId kernel, std::size_t operand, TierId tier) const {
    return access_[(first_operand_[kernel.index] + operand) * tiers_ + tier.index];
  }
  /// Returns the time of the fastest variant with all operands in tier 0, on engine 0.
  Seconds fast(KernelId kernel) const { return fast_[kernel.index]; }
  /// Returns the least time on any engine: no run of the kernel anywhere takes less.
  Seconds fastest(KernelId kernel) const;
  /// The sum of fast() over all kernels.
  Seconds fast_step() const { return fast_step_; }

 private:
  /// One of the placements that were measured for a variant.
  struct MeasuredPlacement {
    std::uint64_t code = 0;   ///< of its tiers
    std::uint32_t entry = 0;  ///< in the profile
  };
  std::uint64_t code_of(std::span<const TierId> tiers) const;
  void index_placements(const std::vector<PlacedTime>& measured);
  const PlacedTime* find(KernelId kernel, std::uint32_t variant, std::span<const TierId> tiers) const;
  double slowdown(KernelId kernel, EngineId engine) const {
    return engine.index == 0 ? 1 : slowdown_[kernel.index * (engines_ - 1) + engine.index - 1];
  }

  const Profile& profile_;
  std::size_t tiers_, engines_;
  std::vector<std::size_t> first_operand_;     ///< of each kernel among all operands; one more for the end
  std::vector<Seconds> access_;                ///< by operand, then by tier
  std::vector<std::size_t> first_variant_;     ///< of each kernel among all variants
  std::vector<std::size_t> first_placement_;   ///< of each variant in placements_; one more for the end
  std::vector<MeasuredPlacement> placements_;  ///< by variant, then by code; none where there is only tier 0
  std::vector<double> cold_share_;
  std::vector<Seconds> fast_;
  std::vector<double> slowdown_;  ///< by kernel, then by engine from 1 on: time there over time on engine 0
  Seconds fast_step_{0};
};

}  // namespace terrace

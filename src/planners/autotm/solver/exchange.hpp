// SPDX-License-Identifier: Apache-2.0
// Improves a placement by exchanges: a few tensors that compete for memory give it up and
// choose anew, in another order. What comes out worse is undone.
//
// One tensor at a time ends where nobody gains by moving alone; here one may take the place of two others.
// Tensors compete that may be in fast memory at one moment, and those that may move beside
// one kernel; operands of one kernel gain together. Tensors that the linear relaxation is undecided about are
// tried first and most. Where that finds nothing any more, all tensors near a few kernels take new paths
// along the relaxation's shares.
#pragma once

#include "planners/autotm/solver/placement.hpp"

namespace terrace::autotm {

class Exchange {
 public:
  /// `least`: a placement where every tensor takes as little as it can.
  Exchange(const Flat& flat, const Placement& least);

  /// Takes, by tensor, how far the relaxation is from giving it one whole path: 0 where it does.
  void set_fractionality(std::span<const double> fractionality);
  /// Tries so many exchanges; the placement gets no slower. pre: the placement has multipliers
  void run(Placement& placement, std::uint64_t attempts, SplitMix& random);
  /// Tries so many regions, by shares of edges. pre: as above
  void renew(Placement& placement, std::span<const double> shares, std::uint64_t regions, SplitMix& random);

 private:
  struct Life {
    std::uint32_t first, end;  ///< moments at which it may be in fast memory
  };

  /// The kernel where a tensor on this edge meets others: beside which it moves or, where nothing moves
  /// beside kernels, which has it as an operand. kNone: none
  std::uint32_t meeting(const Flat::Edge& edge) const;
  void list_meetings();
  void gather(SplitMix& random);
  void gather_of_moment(SplitMix& random);
  void gather_meeting(std::uint32_t kernel, SplitMix& random);
  void gather_region(std::uint32_t first, std::uint32_t end);
  bool attempt(Placement& placement, SplitMix& random);
  bool renew_region(Placement& placement, std::span<const double> shares, SplitMix& random);
  void remember(const Placement& placement);

  const Flat& flat_;
  bool overlaps_;                          ///< some move may be beside a kernel
  std::vector<Life> lives_;                ///< by tensor
  std::vector<Placement::Path> least_;     ///< by tensor: the path that takes least memory
  std::vector<std::uint32_t> fractional_;  ///< tensors, each once, ascending in the start of their lives
  std::vector<std::vector<std::uint32_t>> meeting_;  ///< by kernel: those that meet there
  std::vector<std::uint32_t> kernels_;               ///< those at which several tensors meet, ascending
  std::vector<std::uint32_t> set_;                   ///< the tensors of the present attempt
  std::vector<Placement::Path> before_, little_;     ///< their paths before it, and those that take least
  std::vector<std::uint32_t> region_;                ///< tensors that changed since it began
  std::vector<Placement::Path> region_before_;
  std::vector<bool> in_region_;  ///< by tensor
  std::vector<double> noisy_;    ///< by edge: its share with noise
};

}  // namespace terrace::autotm

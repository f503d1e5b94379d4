// SPDX-License-Identifier: Apache-2.0
// The placement problem, relaxed with multipliers: a lower bound of every solution's time, for any of them.
//
// With mu for memory, lambda for links, nu for overlap and xi for haste the bound is the sum of
//
//   over tensors, the least over paths of         moves + mu bytes - lambda (links kept)
//   over kernels, the least over configurations   (1 - nu - xi) time + xi fastest + mu scratch
//                                                 + lambda (links asked)
//   over rows                                     - mu capacity
//
// What a step takes for a kernel and the moves beside it, max{time, moves}, is at least each of these, and so
// any mixture with weights 1 - nu - xi, xi and nu:
//
//   time + what of each move is beyond the kernel's slowest time
//   fastest time + what of each move is beyond that
//   moves
//
// The first two hold since moves that are longer than some T take T and, each, what is beyond it. Without
// them a move could be spread over kernels that are all shorter than it, and seem hidden. More inequalities
// of a kernel (cuts.hpp) take part in the mixture, with weights of their own in place of some of 1 - nu - xi.
// How much the paths and configurations taken violate each constraint is the direction in which its
// multiplier should go.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "optim/team.hpp"
#include "planners/autotm/solver/cuts.hpp"

namespace terrace::autotm {

using optim::Team;

/// Brings nu and xi into the triangle where they are at least 0 and at most 1 together.
inline void share_overlap(double& overlap, double& haste) {
  const double over = std::max(0.0, (overlap + haste - 1) / 2);
  overlap = std::clamp(overlap - over, 0.0, 1.0);
  haste = std::clamp(haste - over, 0.0, 1 - overlap);
}

struct Multipliers {
  std::vector<double> memory;   ///< mu >= 0, by row, for a unit of memory
  std::vector<double> link;     ///< lambda >= 0, by link; one more for none, 0
  std::vector<double> overlap;  ///< nu in [0, 1], by kernel; one more for what is beside none
  std::vector<double> haste;    ///< xi in [0, 1 - nu], likewise
  std::vector<double> cut;  ///< by cut, from 0 on; those of a kernel with nu and xi are at most 1 together

  std::vector<double> charge;  ///< by edge: what all cuts charge for it; empty where that is not known

  explicit Multipliers(const Flat& flat);
  /// Brings nu + xi down to 1 where it is more.
  void share_overlap();
};

/// What the tensors of one thread ask for.
struct Demand {
  std::vector<double> change;          ///< by row: how much more memory than in the row before
  std::vector<double> overlap, haste;  ///< by kernel; one more for what is beside none

  void clear(const Flat& flat);
  /// Adds the demand to the sums; nothing where the thread had no tensors.
  void add_to(std::vector<double>& memory, std::vector<double>& of_overlap,
              std::vector<double>& of_haste) const;
};

class Relaxation {
 public:
  Relaxation(const Flat& flat, Team& team);
  /// Takes more inequalities of the overlap, which are borrowed and may become more.
  Relaxation(const Flat& flat, Team& team, const Cuts& cuts) : Relaxation(flat, team) { cuts_ = &cuts; }

  /// Returns the bound, rounded down by more than what the sums may be wrong.
  double bound(const Multipliers& multipliers);

  /// A subgradient of the latest bound: by row, link and kernel, what is asked for beyond what there is.
  struct Subgradient {
    std::vector<double> memory, link, overlap, haste;
  };
  const Subgradient& subgradient() const { return subgradient_; }
  /// By kernel: the configuration that the latest bound took.
  const std::vector<std::uint32_t>& taken() const { return taken_; }

 private:
  /// What one thread adds up, in cache lines of its own.
  struct alignas(64) Half {
    double sum = 0, absolute = 0;
    Demand demand;
    std::vector<double> least;      ///< by node
    std::vector<std::uint32_t> by;  ///< by node: the edge of its shortest path

    void add(double cost) {
      sum += cost;
      absolute += std::abs(cost);
    }
  };

  void add_tensors(Half& half, std::uint32_t first, std::uint32_t end, const Multipliers& multipliers);
  double add_tensor(Half& half, const Flat::Tensor& tensor, const Multipliers& multipliers);
  double add_kernel(std::uint32_t kernel, const Multipliers& multipliers);
  void take(Half& half, const Flat::Tensor& tensor, const Flat::Edge& edge);
  void charge_cuts(const Multipliers& multipliers);

  const Flat& flat_;
  Team& team_;
  std::uint32_t middle_tensor_, middle_kernel_;
  const Cuts* cuts_ = nullptr;
  std::vector<double> charge_;  ///< by edge: what all cuts charge for it; empty where there are none
  std::vector<double> less_;    ///< by configuration: what all cuts leave out of its time; empty likewise
  Subgradient subgradient_;
  std::vector<std::uint32_t> taken_;
  std::vector<double> until_;  ///< the multipliers of all rows before this one, summed up
  std::array<Half, 2> halves_;
};

}  // namespace terrace::autotm

// SPDX-License-Identifier: Apache-2.0
// The linear relaxation of the placement problem by primal-dual steps, for multipliers close to the best.
//
// Subgradient steps follow one path and one configuration at a time and stall; here shares of paths and of
// configurations move a little against their cost, and multipliers move with what these shares break
// (Chambolle and Pock 2011, with the steps of each coordinate as in their paper of the same year). Every
// point is reflected and pulled back to where the stretch began (Halpern's iteration), and a new stretch
// begins where the point has moved little (as in PDLP, Applegate and others 2021, and its successors). Any
// multipliers bound the optimum (relaxation.hpp), so nothing here has to be exact: most configurations never
// have a share.
#pragma once

#include <array>
#include <span>

#include "planners/autotm/solver/relaxation.hpp"

namespace terrace::autotm {

class PrimalDual {
 public:
  /// Begins at these multipliers, with shares of the configurations that are `taken`: the best of each kernel
  /// at these multipliers and at others. Where moves may be beside kernels, all configurations have shares.
  PrimalDual(const Flat& flat, Team& team, Cuts& cuts, const Multipliers& multipliers,
             std::vector<bool> taken);

  /// Goes on with another's shares; `edges` and `configurations` say which each is there, or kNone. Tensors
  /// that are not there keep the paths that are best at the multipliers. pre: moves may be beside kernels
  void resume(const PrimalDual& other, const std::vector<std::uint32_t>& edges,
              const std::vector<std::uint32_t>& configurations);

  /// Returns whether it was one of the steps after which multipliers and fractionalities are known.
  bool step();
  const Multipliers& multipliers() const { return multipliers_; }
  /// Returns how much of an edge is taken, at least 0.
  double share(std::uint32_t edge) const { return next_.edge[edge]; }
  /// Returns how far a tensor is from taking one path as a whole: the most that any of its edges is from 0
  /// and 1.
  double fractionality(std::uint32_t tensor) const;
  /// Offers one configuration of each kernel, which has a share from the next stretch on.
  void offer(std::span<const std::uint32_t> configurations);
  /// Adds inequalities of the overlap that the shares violate; returns how many.
  std::size_t add_cuts();

 private:
  /// Shares and multipliers: one point of the iteration.
  struct Point {
    std::vector<double> edge, configuration;                ///< shares
    std::vector<double> memory, link, overlap, haste, cut;  ///< multipliers
    std::vector<double> node, kernel;  ///< multipliers: each takes one path, one configuration
  };
  struct Lengths {
    double primal = 0, dual = 0;
  };

  struct Half {
    Demand demand;
    std::vector<double> node;  ///< what one tensor asks for
  };

  /// Calls `work(half, tensor)` for all tensors, which add to what their half demands; that is added to
  /// `sums`.
  template <class Work>
  void each_tensor(Point& sums, const Work& work);
  /// Calls `work(kernel)` for all kernels.
  template <class Work>
  void each_kernel(const Work& work);
  /// Takes the paths and configurations that are best at these multipliers, and what they cost.
  void begin();
  void begin_tensor(std::uint32_t tensor);
  void begin_kernel(std::uint32_t kernel);
  /// Lists the configurations that are taken. Their shares stay as they are.
  void list_configurations();
  void list_offers();
  void set_units();
  /// Sets the units of memory anew: it has large multipliers at few moments, so units follow them.
  void renew_units();
  void set_steps();
  void add_tensor_sums(Demand& demand, std::uint32_t tensor, const std::vector<double>& until);
  void add_kernel_sums(std::uint32_t kernel);
  /// Steps to the next point, and where nobody looks at that, on to the point it is pulled back to.
  template <bool looks>
  void advance();
  template <bool looks>
  void move_edges(Half& half, std::uint32_t tensor);
  template <bool looks>
  void move_configurations(std::uint32_t kernel);
  template <bool looks>
  void move_multipliers(std::vector<double> Point::*multipliers, double least);
  template <bool looks>
  void move_overlap();
  template <bool looks>
  void set_multiplier(std::vector<double> Point::*multipliers, std::size_t i, double after);
  void charge_cuts();
  void add_cut_sums();
  /// Lists where a kernel's multipliers of the overlap go: those of moves, of haste, of its cuts.
  void list_weights(std::uint32_t kernel);
  void share_weights();
  /// Returns a coordinate of the next point: `before` reflected about `after` and pulled back to the start.
  double pulled(double before, double after, double start) const {
    return away_ * (2 * after - before) + (1 - away_) * start;
  }
  void pull_back();
  bool is_settled();
  Lengths distance(const Point& a, const Point& b) const;
  void restart();
  void show_multipliers();

  const Flat& flat_;
  Team& team_;
  Cuts& cuts_;
  std::vector<std::uint32_t> first_node_;            ///< by tensor
  std::vector<bool> taken_;                          ///< by configuration of the problem
  std::vector<std::uint32_t> listed_;                ///< the configurations that have shares
  std::vector<Flat::Configuration> configurations_;  ///< the listed ones
  std::vector<std::uint32_t> first_;  ///< by kernel: its first listed one; one more for the end
  bool has_offers_ = false;           ///< some configurations are taken and not listed yet
  Point now_, next_, start_;
  Point unit_;   ///< the unit of each multiplier
  Point step_;   ///< the length of a step in each coordinate
  Point asked_;  ///< by multiplier but those of nodes: what is asked for beyond what there is
  std::array<Half, 2> halves_;
  std::uint32_t middle_tensor_, middle_kernel_ = 0;
  std::vector<double> until_;
  Point charged_;  ///< what all cuts charge for edges and leave out of configurations
  Point ahead_;    ///< shares, as far beyond the next point as that is from this one
  struct Weight {
    double price, step;
  };
  std::vector<Weight> weights_;  ///< the weights of one kernel's inequalities
  Multipliers multipliers_;
  double weight_ = 1;          ///< how long steps of multipliers are against those of shares
  int careful_stretches_ = 0;  ///< how many stretches are left whose end gives multipliers more weight
  bool overlaps_;              ///< some move may be beside a kernel
  double away_ = 0;            ///< how much of the way from the start of the stretch stays
  std::uint64_t steps_ = 0, stretch_ = 0;
  double first_change_ = 0, last_change_ = 0;
};

template <class Work>
void PrimalDual::each_tensor(Point& sums, const Work& work) {
  const auto tensors = static_cast<std::uint32_t>(flat_.tensors.size());
  team_.halves(middle_tensor_, tensors, [&](unsigned i, std::uint32_t first, std::uint32_t end) {
    Half& half = halves_[i];
    half.demand.clear(flat_);
    half.node.resize(flat_.most_nodes);
    for (std::uint32_t t = first; t < end; ++t) work(half, t);
  });
  for (const Half& half : halves_) half.demand.add_to(sums.memory, sums.overlap, sums.haste);
}

template <class Work>
void PrimalDual::each_kernel(const Work& work) {
  const auto kernels = static_cast<std::uint32_t>(flat_.kernels.size());
  team_.halves(middle_kernel_, kernels, [&](unsigned, std::uint32_t first, std::uint32_t end) {
    for (std::uint32_t k = first; k < end; ++k) work(k);
  });
}

}  // namespace terrace::autotm

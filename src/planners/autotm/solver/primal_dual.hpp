// The linear relaxation of the placement problem by primal-dual steps, for prices that are close to the best.
//
// Subgradient steps follow one path and one configuration at a time and stall; here shares of paths and of
// configurations move a little against their cost, and prices move with what these shares break (Chambolle
// and Pock 2011, with the steps of each coordinate as in their paper of the same year). Every point is
// reflected and pulled back to where the stretch began (Halpern's iteration), and a new stretch begins where
// the point has moved little (as in PDLP, Applegate and others 2021, and its successors). Any prices bound
// the optimum (relaxation.hpp), so nothing here has to be exact: most configurations never have a share.
#pragma once

#include <array>
#include <span>

#include "planners/autotm/solver/relaxation.hpp"

namespace terrace::autotm {

class PrimalDual {
 public:
  /// Begins at these prices, with shares of the configurations that are `taken`: the best of each kernel at
  /// these prices and at others. Where moves may be beside kernels, of all.
  PrimalDual(const Flat& flat, Team& team, Cuts& cuts, const Multipliers& multipliers,
             std::vector<bool> taken);

  /// Goes on with another's shares. By edge and by configuration: which it is there, or kNone. Tensors that
  /// are not there keep the paths that are best at the prices. pre: moves may be beside kernels
  void resume(const PrimalDual& other, const std::vector<std::uint32_t>& edges,
              const std::vector<std::uint32_t>& configurations);

  /// Whether it was one of those after which prices and doubts are known.
  bool step();
  const Multipliers& multipliers() const { return multipliers_; }
  /// How much of an edge is taken, from 0 on.
  double share(std::uint32_t edge) const { return next_.edge[edge]; }
  /// How far a tensor is from taking one path as a whole: the most that any of its edges is from 0 and 1.
  double fractionality(std::uint32_t tensor) const;
  /// One of each kernel: they have shares from the next stretch on.
  void offer(std::span<const std::uint32_t> configurations);
  /// Adds inequalities of the overlap that the shares break. How many.
  std::size_t add_cuts();

 private:
  /// What is chosen and what it is charged.
  struct Point {
    std::vector<double> edge, configuration;                ///< shares
    std::vector<double> memory, link, overlap, haste, cut;  ///< prices
    std::vector<double> node, kernel;                       ///< of one path, of one configuration
  };
  struct Lengths {
    double primal = 0, dual = 0;
  };

  struct Half {
    Demand demand;
    std::vector<double> node;  ///< what one tensor asks for
  };

  /// `work(half, tensor)` for all tensors, which add to what their half demands; that is added to `sums`.
  template <class Work>
  void each_tensor(Point& sums, const Work& work);
  /// `work(kernel)` for all of them.
  template <class Work>
  void each_kernel(const Work& work);
  /// Every path and configuration that is best at these prices, and what it costs.
  void begin();
  void begin_tensor(std::uint32_t tensor);
  void begin_kernel(std::uint32_t kernel);
  /// Lists what is taken. Shares stay.
  void list_configurations();
  void list_offers();
  void set_units();
  /// Memory is dear at few moments: its units go with its prices.
  void renew_units();
  void set_steps();
  void add_tensor_sums(Demand& demand, std::uint32_t tensor, const std::vector<double>& until);
  void add_kernel_sums(std::uint32_t kernel);
  /// A step to the next point. Where nobody looks at that, on to the point it is pulled back to.
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
  /// Where a kernel's prices of the overlap go: of moves, of haste, of its cuts.
  void list_weights(std::uint32_t kernel);
  void share_weights();
  /// The point after `before`, whose next one is `after`.
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
  std::vector<std::uint32_t> listed_;                ///< those that have shares
  std::vector<Flat::Configuration> configurations_;  ///< the same
  std::vector<std::uint32_t> first_;                 ///< by kernel, of these; one more for the end
  bool has_offers_ = false;                          ///< some are taken and not listed
  Point now_, next_, start_;
  Point unit_;   ///< of each price
  Point step_;   ///< of each coordinate
  Point asked_;  ///< by price but those of nodes: what is asked for beyond what there is
  std::array<Half, 2> halves_;
  std::uint32_t middle_tensor_, middle_kernel_ = 0;
  std::vector<double> until_;
  Point charged_;  ///< to edges by all cuts, and what configurations do without
  Point ahead_;    ///< shares, as far beyond the next point as that is from this one
  struct Weight {
    double price, step;
  };
  std::vector<Weight> weights_;  ///< of one kernel
  Multipliers multipliers_;
  double weight_ = 1;          ///< of prices against shares
  int careful_stretches_ = 0;  ///< at whose end prices get more weight
  bool overlaps_;              ///< some move may be beside a kernel
  double away_ = 0;            ///< from where the stretch began: how much of the way stays
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

// SPDX-License-Identifier: Apache-2.0
// A solution being improved: one tensor at a time takes the path that is best given all others.
//
// The best path is a shortest one, over the edges that fit beside the others. What it costs is a
// mixture of the truth and of what the multipliers say (relaxation.hpp). By the multipliers alone all tensors
// together come near the relaxation's optimum; by the truth alone the first take all memory, and no tensor
// gains anything by being the only fast one of a kernel. So a placement is made by multipliers first and ends
// with the truth.
#pragma once

#include <algorithm>
#include <limits>
#include <span>

#include "base/random.hpp"
#include "optim/range_maximum.hpp"
#include "planners/autotm/solver/relaxation.hpp"

namespace terrace::autotm {

/// How much the multipliers say, from 0 (nothing) to 1.
struct Trust {
  double memory = 0;  ///< weight of the multipliers of memory; the truth is that free memory costs nothing
  double link = 0;    ///< weight of the multipliers of links, instead of the true times of kernels and moves
  double fee = 0;     ///< the share of memory's average worth that is added to its multiplier
  double hope = 0;    ///< the share of a link's worth that is added to its multiplier, as some pay together
};

/// Memory that no path of any tensor avoids.
struct Shortage {
  std::uint32_t row = 0;
  std::int64_t bytes = 0;  ///< how many the row needs
};

class Placement {
 public:
  /// Starts with every tensor taking as little memory as it can.
  explicit Placement(const Flat& flat);

  /// Returns whether every tensor has a path and every kernel a configuration that fits.
  bool is_complete() const { return is_complete_; }
  bool is_overfull() const;
  /// Returns the row that lacks most, and the bytes it cannot do without. pre: nothing was chosen yet
  Shortage shortage();

  using Path = std::vector<std::uint32_t>;  ///< as edges

  /// Sets the multipliers that choices follow from now on. Borrows them.
  void set_multipliers(const Multipliers& multipliers);
  void set_trust(Trust trust) { trust_ = trust; }
  /// Gives the tensor its best path. pre: complete and not overfull; it stays so
  void choose(std::uint32_t tensor);
  /// Gives the tensor the path with most of its edges' shares. pre: as above
  void follow(std::uint32_t tensor, std::span<const double> shares);
  /// Lets every tensor choose once, in random order. pre: as above
  void sweep(Trust trust, SplitMix& random);
  /// Gives some tensors other paths, all at once. Returns whether that fits; else the caller has to go back.
  bool exchange(std::span<const std::uint32_t> tensors, std::span<const Path> paths);

  const Path& path(std::uint32_t tensor) const { return paths_[tensor]; }
  double time() const { return time_; }
  Solution solution() const;

 private:
  /// Fills path_ with a shortest path where there is one. `cost(edge, limit)` may be infinite, and is of no
  /// use from `limit` on.
  template <class Cost>
  bool find(const Flat::Tensor& tensor, Cost cost);
  /// Takes the shortest path that fits, or stays. pre: removed from before_
  template <class Cost>
  void settle(std::uint32_t tensor, Cost cost);
  void shuffle(SplitMix& random);
  /// Sends tensors where there is room, a few times over.
  void repair();
  bool can_avoid(const Flat::Tensor& tensor, std::uint32_t row);
  std::int64_t least_scratch(std::uint32_t row) const;
  double least_cost(const Flat::Edge& edge) const;

  /// Takes the tensor off its path. The kernels it is linked to have no scratch until they are configured
  /// again.
  void remove(std::uint32_t tensor);
  void add(std::uint32_t tensor, const Path& path);
  /// Configures the kernels that the tensor is linked to. Returns whether they have configurations that fit.
  bool configure_kernels(std::uint32_t tensor);
  /// Returns whether no row is too full where the tensor lies and where its kernels have their scratch.
  bool has_room(std::uint32_t tensor) const;

  std::uint32_t link(const Flat::Edge& edge) const;
  /// Sets what each link of a tensor costs its kernel, kept or not.
  void value_links(const Flat::Tensor& tensor, const Path& path);
  void value_operand(const Flat::Tensor& tensor, std::uint32_t first_link);
  double move_cost(const Flat::Edge& edge) const;
  bool fits(const Flat::Tensor& tensor, const Flat::Edge& edge) const;

  /// All pools have the same capacity here; what one has more or less is a load of its rows from the start.
  std::int64_t capacity() const { return flat_.capacity[0]; }
  std::int64_t left(std::uint32_t row) const { return capacity() - loads_.most(row, row + 1); }
  /// Returns the groups of which some link is not kept, as bits; the links from but_first to but_end do not
  /// count.
  std::uint64_t slow_groups(std::uint32_t kernel, std::uint32_t but_first = kNone,
                            std::uint32_t but_end = 0) const;
  double cost(std::uint32_t kernel, std::uint32_t configuration) const;
  /// Returns the best configuration with these groups not kept and so many bytes of fast memory taken, or
  /// kNone.
  std::uint32_t configure(std::uint32_t kernel, std::uint64_t slow, std::int64_t taken) const;
  void hold_scratch(std::uint32_t kernel, std::uint32_t row, std::int64_t bytes);
  void release_scratch(std::uint32_t kernel) { hold_scratch(kernel, kernel + 1, 0); }
  bool set_configuration(std::uint32_t kernel);
  double kernel_time(std::uint32_t kernel) const;
  void move_beside(std::uint32_t kernel, double time);
  double memory_cost(const Flat::Tensor& tensor, const Flat::Edge& edge) const;

  const Flat& flat_;
  optim::RangeMaximum loads_;
  std::vector<Path> paths_;                   ///< by tensor, as edges
  std::vector<std::uint8_t> fast_;            ///< by link: whether it is kept
  std::vector<std::uint32_t> configuration_;  ///< by kernel
  struct Scratch {
    std::uint32_t row;
    std::int64_t bytes;
  };
  std::vector<Scratch> scratch_;  ///< by kernel: what it holds
  std::vector<double> beside_;    ///< by kernel: the seconds of the moves beside it
  double time_ = 0;               ///< seconds of the step
  bool is_complete_ = true;

  const Multipliers* multipliers_ = nullptr;
  Trust trust_;
  double fee_;                     ///< what a unit of memory is worth on average
  std::vector<double> until_;      ///< by row: the sum of the multipliers of all rows before it
  std::vector<double> worth_;      ///< by slot: what it costs the kernel
  std::vector<double> least_;      ///< by node: the cost of its shortest path
  std::vector<std::uint32_t> by_;  ///< by node: the edge of its shortest path
  Path path_, before_;
  std::vector<std::uint32_t> order_;  ///< the order in which tensors choose in a sweep
};

template <class Cost>
bool Placement::find(const Flat::Tensor& tensor, Cost cost) {
  std::fill_n(least_.begin(), tensor.nodes, kImpossible);
  least_[0] = 0;
  for (std::uint32_t e = tensor.first; e < tensor.end; ++e) {
    const Flat::Edge& edge = flat_.edges[e];
    if (least_[edge.from] == kImpossible) continue;
    const double until = least_[edge.from] + cost(edge, least_[edge.to] - least_[edge.from]);
    if (until >= least_[edge.to]) continue;
    least_[edge.to] = until;
    by_[edge.to] = e;
  }
  if (least_[tensor.nodes - 1] == kImpossible) return false;
  path_.clear();
  for (std::uint32_t node = tensor.nodes - 1; node != 0; node = flat_.edges[path_.back()].from)
    path_.push_back(by_[node]);
  std::reverse(path_.begin(), path_.end());
  return true;
}

}  // namespace terrace::autotm

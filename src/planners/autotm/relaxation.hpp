// The placement problem with its couplings priced: a lower bound of every solution's time, for any prices.
//
// For prices mu of memory, lambda of links and nu of overlap the bound is
//
//   sum over tensors of the least over paths of   moves + mu * bytes - lambda * links in fast memory
// + sum over kernels of the least over configurations of   (1 - nu) time + mu * scratch + lambda * links
// asked
// - mu * capacity
//
// where max{kernel, moves beside it} >= (1 - nu) kernel + nu moves. The part of a move that is longer than
// its kernel ever takes counts in full: the kernel cannot hide it, and another move's part cannot either. How
// much each coupling is broken by the paths and configurations taken is the direction in which its price
// should go.
#pragma once

#include <vector>

#include "planners/autotm/flat.hpp"

namespace terrace::autotm {

struct Prices {
  std::vector<double> memory;   ///< mu >= 0, by moment, of the unit of memory
  std::vector<double> link;     ///< lambda >= 0, by slot; 0 for slots that are no link
  std::vector<double> overlap;  ///< nu in [0, 1], by kernel; one more for what is beside none
  std::vector<double> haste;    ///< xi in [0, 1 - nu], likewise

  explicit Prices(const Flat& flat);
  /// Brings nu + xi down to 1 where it is more.
  void share_overlap();
};

class Relaxation {
 public:
  explicit Relaxation(const Flat& flat);

  /// Rounded down by more than what the sums may be wrong.
  double bound(const Prices& prices);

  /// Of the latest bound: by moment, link and kernel, what is asked for beyond what there is.
  struct Broken {
    std::vector<double> memory, link, overlap, haste;
  };
  const Broken& broken() const { return broken_; }

 private:
  double add_tensor(const Flat::Tensor& tensor, const Prices& prices);
  double add_kernel(std::uint32_t kernel, const Prices& prices);
  void take(const Flat::Tensor& tensor, const Flat::Edge& edge);

  const Flat& flat_;
  Broken broken_;
  std::vector<double> until_;      ///< price of a unit at all moments before this one
  std::vector<double> least_;      ///< by node
  std::vector<std::uint32_t> by_;  ///< by node: the edge of its shortest path
};

}  // namespace terrace::autotm

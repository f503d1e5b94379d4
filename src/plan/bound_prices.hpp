// A lower bound of the step time for any prices: what couples tensors, kernels and links is priced, and then
// each of them does its best alone.
//
// A plan's step consists of blocks of kernels. A block takes, for any weight W between 0 and 1, at least
//
//   (1 - W) (its kernels + what is computed again in it + what its copies cost kernels)
//   + what links are busy with in it, where `out` counts for one second's share, `in` for another
//
// as long as both shares are 0..W and W bounds what links can do at once (see `weight`). While kernel m runs,
// the bytes in tier 0 are within the budget. A kernel takes max{fast, what its operands in slower memory
// take}. With a price for a byte of tier 0 during each kernel and for each operand in slower memory, every
// plan's step is at least the sum of
//
//   over tensors, the least over all ways to have its values where they are used, of
//                 memory + copies + computing again + prices of operands in slower memory
//   over kernels, the least over sets of operands in slower memory of  (1 - W) time - their prices
//   over moments  - memory x budget
//
// A tensor's value is in fast memory, in slower memory or in both. It changes by being written, by a copy in
// any block between its writing and its leaving, or between its leaving and its use, and by being computed
// again. It takes memory from its use to the block it leaves in, and from the block it comes in to its use.
// Relaxed: a copy takes no time of its own but its share of the block; slower tiers have room, are one tier
// with the best of each, and copies between them are free; what is computed again needs no operands; when a
// step starts and ends there is room; offsets are not packed.
#pragma once

#include <vector>

#include "plan/bound_path.hpp"

namespace terrace::bounds {

class Relaxation {
 public:
  explicit Relaxation(const Problem& problem);

  /// In seconds, rounded down by more than the sums may be wrong.
  double bound(const Prices& prices, Again again);

  /// Of the latest bound: what is asked for beyond what there is.
  struct Broken {
    std::vector<double> memory, operand, out, in;
  };
  const Broken& broken() const { return broken_; }

 private:
  struct Taker;
  double add_kernel(std::uint32_t kernel, const Prices& prices, double weight);
  double add_large_kernel(std::uint32_t kernel, const Prices& prices, double weight);
  void settle(const Prices& prices);

  const Problem& problem_;
  Paths paths_;
  Broken broken_;
  std::vector<double> kernels_, copied_out_, copied_in_;  ///< by block: seconds, bytes
  std::vector<std::uint32_t> order_;
};

}  // namespace terrace::bounds

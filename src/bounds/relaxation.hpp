// A lower bound of the step time for any prices: what couples tensors, kernels and links is priced, and then
// each of them does its best alone.
//
// A step consists of runs of the graph's kernels, in order, and of pauses between them, in which things may
// be computed again. Runs, each with the pause before it, are cut into blocks. The runs of a block take, for
// any weight W between 0 and 1, at least
//
//   (1 - W) (its kernels + what copies beside them cost them)
//   + what links are busy with beside them, where `out` counts for one second's share, `in` for another
//
// as long as both shares are 0..W and W bounds what links can do at once (see `weight`). Its pauses take at
// least the same of what is computed again and copied in them, with a weight of their own. While kernel m
// runs, the bytes in tier 0 are within the budget. A kernel takes max{fast, what its operands in slower
// memory take}. With a price for a byte of tier 0 during each kernel and for each operand in slower memory,
// every plan's step is at least the sum of
//
//   over tensors, the least over all ways to have its values where they are used, of
//                 memory + copies + computing again + prices of operands in slower memory
//   over kernels, the least over sets of operands in slower memory of  (1 - W) time - their prices
//   over moments  - memory x budget
//
// A tensor's value is in fast memory, in slower memory or in both. It changes by being written, by a copy
// between its writing and its leaving, or between its leaving and its use, and by being computed again. It
// takes memory from its use until it leaves, and from when it comes to its use. Regions come and go between
// kernels, so a copy beside a kernel takes memory during all of that kernel; one in a pause does not.
// Relaxed: a copy takes no time of its own but its share of the block, and memory during one kernel of it;
// slower tiers have room, are one tier with the best of each, and copies between them are free; what is
// computed again needs no operands; when a step starts and ends there is room; offsets are not packed.
#pragma once

#include <vector>

#include "bounds/path.hpp"

namespace terrace::bounds {

class Relaxation {
 public:
  explicit Relaxation(const Problem& problem);

  /// In seconds, rounded down by more than the sums may be wrong.
  double bound(const Multipliers& multipliers, Recompute recompute);

  /// Of the latest bound: what is asked for beyond what there is.
  struct Subgradient {
    std::vector<double> memory, operand, out, in, pause_out, pause_in;
  };
  const Subgradient& subgradient() const { return subgradient_; }

 private:
  struct Taker;
  double add_kernel(std::uint32_t kernel, const Multipliers& multipliers, double weight);
  double add_large_kernel(std::uint32_t kernel, const Multipliers& multipliers, double weight);
  void settle(const Multipliers& multipliers);
  void settle(const Multipliers& multipliers, Part part, std::vector<double>& out,
              std::vector<double>& in) const;

  const Problem& problem_;
  Paths paths_;
  Subgradient subgradient_;
  /// What happens in one part of a block.
  struct Load {
    double kernels = 0;      ///< seconds
    double out = 0, in = 0;  ///< bytes
  };
  std::vector<Load> run_, pause_;  ///< by block
  std::vector<std::uint32_t> order_;
};

}  // namespace terrace::bounds

// SPDX-License-Identifier: Apache-2.0
// Decides where every tensor is at every moment: each chooses in turn, and all together fit in fast memory.
//
// Each tensor takes the cheapest path (bounds/path.hpp) given what the others took: memory that is full
// cannot be had, a kernel's slower operands cost what they really add to its time, and a copy costs kernels
// their loss and, where its block has no time left for it, all it takes. The multipliers of the bound say
// what else memory and links could be used for; sweeps follow them less and less. What takes most of memory
// blocks what could be better: in the end a few tensors at a time choose once more, in other orders.
#pragma once

#include <vector>

#include "base/random.hpp"
#include "bounds/relaxation.hpp"

namespace terrace::best {

/// How far a sweep follows the multipliers: 0 not at all, 1 as they are.
struct Trust {
  double memory = 1, link = 1;
};

/// How long one tensor's transfers take beside kernels, in seconds. Small tensors take longer for a byte.
struct CopyTime {
  double out = 0, in = 0;
};

/// Whether copies are expected to be done beside kernels, and have their room meanwhile, or kernels to wait
/// for links anyway, so that how long copies take compared with kernels tells nothing.
enum class Copies { hidden, waited_for };

/// Which tensors choose before others, after those whose copies take much longer than their bytes would.
enum class Order { largest_first, random };

class Placement {
 public:
  /// Nothing is in fast memory but what kernels cannot use elsewhere. Borrows the problem and the times, one
  /// for each of its tensors.
  Placement(const bounds::Problem& problem, const std::vector<CopyTime>& copies, double capacity,
            Copies expected);

  /// Every tensor of at least so many bytes chooses anew; tensors of one size do so in random order.
  void sweep(const bounds::Multipliers& multipliers, Trust trust, Order order, SplitMix& random,
             double least = 0);

  /// An estimate of the step in seconds, block by block; bytes that do not fit cost more than anything else.
  double cost() const;
  /// Makes so many attempts in which some tensors of one moment choose in another order; undoes what is
  /// worse.
  void exchange(std::uint64_t attempts, SplitMix& random);

  const bounds::TensorPath& path(std::size_t tensor) const { return paths_[tensor]; }
  /// Whether it is in fast memory from step to step.
  bool is_pinned(std::size_t tensor) const { return pinned_[tensor]; }

 private:
  struct Taker;
  void choose(std::size_t tensor, const bounds::Multipliers& multipliers, Trust trust);
  void settle(std::size_t tensor, const bounds::Multipliers& multipliers, Trust trust);
  void take(std::size_t tensor, double sign);
  std::pair<std::uint32_t, std::uint32_t> life(const bounds::BoundTensor& tensor) const;
  void price_memory(const bounds::BoundTensor& tensor, const bounds::Multipliers& multipliers, double trust);
  void price_links(std::size_t tensor, const bounds::Multipliers& multipliers, double trust);
  void price_operands(const bounds::BoundTensor& tensor);
  double exposed(std::uint32_t block) const;
  void wait(const bounds::When& when, double seconds);
  void list_large();
  void try_again(const std::vector<std::size_t>& some);
  std::uint32_t some_moment(SplitMix& random) const;
  std::vector<std::size_t> some_of_one_moment(SplitMix& random) const;

  const bounds::Problem& problem_;
  const std::vector<CopyTime>& copies_;
  double capacity_;
  bool hides_;  ///< copies are expected to be hidden
  bounds::Paths finder_;
  bounds::Multipliers own_;       ///< of operands
  bounds::UnitCosts unit_costs_;  ///< of the tensor that chooses
  std::vector<bounds::TensorPath> paths_;
  std::vector<bool> pinned_;
  std::vector<int> copy_overhead_;        ///< by tensor: how much longer its copies take than large ones do
  std::vector<std::uint32_t> kernel_of_;  ///< by operand
  std::vector<double> used_;              ///< by moment: bytes of fast memory
  std::vector<double> lost_;              ///< by moment: seconds of slower operands and waiting
  std::vector<double> slow_;              ///< by kernel: seconds of its slower operands
  std::vector<double> kernels_, out_busy_, in_busy_;  ///< by block: seconds
  std::vector<double> begin_;                         ///< by kernel: when it begins if nothing waits
  double paused_ = 0;                                 ///< seconds of copies that kernels wait for
  std::vector<std::vector<std::uint32_t>> large_;     ///< by moment: the largest tensors of that time
};

}  // namespace terrace::best

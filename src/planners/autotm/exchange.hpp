// Improving a placement by exchanges: a few tensors that are in each other's way give up their memory and
// choose again, in another order. What comes out worse is undone.
//
// One tensor at a time ends where nobody gains by moving alone; here one may take the place of two others.
// Tensors that the linear relaxation is undecided about are tried first and most.
#pragma once

#include "planners/autotm/placement.hpp"

namespace terrace::autotm {

class Exchange {
 public:
  /// `least`: a placement where every tensor takes as little as it can.
  Exchange(const Flat& flat, const Placement& least);

  /// By tensor, how undecided it is, from 0 on.
  void set_doubts(std::span<const double> doubts);
  /// Tries so many. pre: the placement has prices; it gets no slower
  void run(Placement& placement, std::uint64_t attempts, SplitMix& random);

 private:
  void gather(SplitMix& random);
  bool attempt(Placement& placement, SplitMix& random);

  struct Life {
    std::uint32_t first, end;  ///< moments at which it may be in fast memory
  };
  std::vector<Life> lives_;              ///< by tensor
  std::vector<Placement::Path> least_;   ///< by tensor
  std::vector<std::uint32_t> doubtful_;  ///< tensors, each once, ascending in the start of their lives
  std::vector<std::uint32_t> set_;       ///< of the attempt
  std::vector<Placement::Path> before_, little_;  ///< of its tensors
};

}  // namespace terrace::autotm

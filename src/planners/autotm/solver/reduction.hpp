// SPDX-License-Identifier: Apache-2.0
// A placement problem made smaller for bounds: every solution of the whole problem is one of the smaller, and
// takes no more time in it.
//
// Of two configurations that take nearly the same time one is left, which asks for what the less demanding
// does and takes as long as the faster. What nobody asks for any more is no link, tensors without links that
// may as well stay in slow memory are gone, and edges that only follow each other are one.
#pragma once

#include "planners/autotm/solver/relaxation.hpp"

namespace terrace::autotm {

struct Reduction {
  Flat flat;                           ///< without `original`; kernels and moments as in the whole problem
  std::vector<std::uint32_t> links;    ///< by link: which it is in the whole problem
  std::vector<std::uint32_t> tensors;  ///< by tensor: which it is in the whole problem
  std::vector<std::uint32_t> edges;    ///< by edge of the whole problem: which it is here; kNone: none

  /// `share`: how much less of its time, at most, the smaller problem counts for a step with everything in
  /// fast memory.
  Reduction(const Flat& whole, double share);

  /// Turns multipliers of this problem into those of the whole one.
  void widen(const Multipliers& multipliers, const Cuts& cuts, Multipliers& whole) const;
  /// Returns multipliers of the whole problem for this one, without those of cuts.
  Multipliers narrow(const Multipliers& whole) const;
};

}  // namespace terrace::autotm

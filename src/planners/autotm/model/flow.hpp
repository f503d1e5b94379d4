// SPDX-License-Identifier: Apache-2.0
// The flow graph of one tensor (001 section 3.1, fig. 6; section 7.1.2).
//
// A tensor's state is the fastest tier it lies in and, perhaps, one slower tier with the same contents. With
// two tiers that is: in fast memory alone, in both, in the slow one. The copy is how a tensor that does not
// change is written to slow memory once (001 section 3.6).
//
//   level   a tier of the instance, from the fastest on; all but the last are pools
#pragma once

#include <optional>

#include "planners/autotm/model/instance.hpp"

namespace terrace::autotm {

/// A tensor may move beside each of so many kernels after a use and before the next one. The paper wants a
/// set of kernels for this and names none. Gaps of up to twice as many kernels are covered whole.
constexpr std::uint32_t kReach = 4;

/// A tier as one tensor sees it.
struct Level {
  TierId tier;
  bool usable = true;                      ///< kernels can use the tier in place
  bool fits = true;                        ///< the tensor alone fits in its capacity
  std::vector<std::optional<Seconds>> to;  ///< by level: time of a copy there; none: no link
};

struct TensorLife {
  enum class Origin {
    made,   ///< created by its first use
    given,  ///< filled before the step; at its end its region has to exist again, whatever it holds
    kept,   ///< ends where it started: in fast memory all the time, or in a slower tier
  };
  TensorId tensor;
  Bytes size;
  Origin origin = Origin::made;
  std::vector<TensorUse> uses;
  std::vector<bool> anywhere;  ///< by use: whether it may find the tensor in a tier that is not usable
  std::vector<Level> levels;
};

/// Builds the flow graph of a tensor; it has no edges where the tensor has no path.
FlowGraph flow_graph(TensorLife life, Formulation formulation, std::uint32_t moments);

}  // namespace terrace::autotm

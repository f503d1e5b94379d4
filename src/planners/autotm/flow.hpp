// The flow graph of one tensor (001 section 3.1, fig. 6; section 7.1.2).
//
// A tensor is in fast memory alone, in both tiers with the same contents, or in the slow one. The state
// "both" is how a tensor that does not change is written to slow memory once (001 section 3.6).
#pragma once

#include <optional>

#include "planners/autotm/instance.hpp"

namespace terrace::autotm {

/// Beside how many kernels next to a use a tensor may leave or come back: the paper asks for a set of kernels
/// and names none. Gaps of up to twice as many kernels are covered whole.
constexpr std::uint32_t kReach = 4;

struct TensorLife {
  enum class Origin {
    made,   ///< by its first use
    given,  ///< filled before the step; afterwards its place is to be there again, whatever it holds
    kept,   ///< at the end where it was at the start: in fast memory all the time, or in the slow tier
  };
  TensorId tensor;
  Bytes size;
  Origin origin = Origin::made;
  std::vector<TensorUse> uses;
  std::vector<bool> may_be_slow;   ///< by use: whether it may find the tensor in the slow tier
  bool fits = true;                ///< in fast memory at all
  std::optional<Seconds> out, in;  ///< of a copy; none: there is no link
};

/// Without edges where the tensor has no path.
FlowGraph flow_graph(TensorLife life, Formulation formulation, TierId slow, std::uint32_t moments);

}  // namespace terrace::autotm

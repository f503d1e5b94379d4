// SPDX-License-Identifier: Apache-2.0
// A step seen from one kernel, with what recomputation needs: a bound where kernels use fast memory alone.
//
// While kernel p runs for the first time, every value that was made before it is at hand, in fast memory or
// in slower memory, or it is not. What is needed after p and is not at hand is recomputed after p, by the
// kernel that made it, whose own inputs are at hand or are recomputed after p as well. So the values of a
// segment cannot all be gone: whoever recomputes its last value recomputes, or has, all of it.
//
// What is at hand and does not fit beside the operands of p is in slower memory. What of it was made in this
// step went there before p, and what of it is read again comes back after p. With O and I bytes of both, the
// kernels before and after p taking B and A seconds and the recomputed ones R, the step takes at least
//
//   max{ O out, B + loss O out } + p + max{ I in, A + R + loss I in }        (out, in: seconds for a byte)
//
// and each maximum at least any mean of its two terms, or less where a link's seconds count for less. With
// weights for these that is a constant, a price for a byte of each value at hand, and a share of each
// kernel's time that is recomputed. The least choice is a minimum cut: between values that are needed and the
// kernels' times, through the price of each value and from each kernel to its inputs. Any flow is at most the
// least cut, so any flow and any weights prove a bound.
#pragma once

#include <cstdint>
#include <vector>

#include "terrace/plan_request.hpp"

namespace terrace::bounds {

/// All links in one direction, at their best.
struct Carriage {
  double busy = 0;  ///< seconds for a byte
  double loss = 0;  ///< share of the kernels' speed that is lost at least while any of them is busy
};

class ClosureViews {
 public:
  /// Borrows the request.
  ClosureViews(const PlanRequest& request, const KernelClock& clock, Carriage out, Carriage in);

  /// Seconds that a step takes at least, seen from this kernel.
  double least(std::uint32_t kernel);

 private:
  /// What a tensor holds from one write to the next.
  struct Value {
    TensorId tensor;
    std::uint32_t made;       ///< by this kernel; kNever: it was there before the step
    std::uint32_t last_read;  ///< kNever: none reads it
    bool kept;                ///< it is there after the step
  };
  /// How much a second counts that links are busy, 0..1.
  struct Weights {
    double out = 0, in = 0;
  };
  /// A network whose flows are bounds, as lists of edges by node.
  class Network;

  std::uint32_t value_of(TensorId tensor);
  void select(std::uint32_t kernel);
  double with(std::uint32_t kernel, Weights weights);
  double bytes(const Value& value) const;
  void climb(std::uint32_t kernel, double Weights::*which, Weights& weights, double& best);

  const PlanRequest& request_;
  Carriage out_, in_;
  std::uint64_t work_;                   ///< edges that flows may still look at
  std::vector<double> seconds_, begin_;  ///< by kernel; when it begins if nothing waits
  std::vector<Value> values_;
  std::vector<std::vector<std::uint32_t>> inputs_;  ///< by kernel: values
  std::vector<std::uint32_t> latest_;               ///< by tensor: its value, while kernels are walked
  // Of the view that was selected last:
  std::vector<std::uint32_t> chosen_;  ///< values that are needed, or that recomputing one needs
  std::vector<bool> is_operand_;       ///< by tensor
  double room_ = 0, always_out_ = 0, always_in_ = 0;  ///< bytes
};

}  // namespace terrace::bounds

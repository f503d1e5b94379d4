// A step as its lower bound sees it: kernels in the graph's order, the tensors they use, and the best that
// links could do. Everything here is relaxed: no plan does better than what it says.
//
//   slower     all tiers but the first, taken as one with the best of each of them
//   block      a run of kernels within which links have one price
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/step_uses.hpp"
#include "terrace/plan_request.hpp"

namespace terrace::bounds {

/// All links out of tier 0, or all into it, as one.
struct Direction {
  double busy = 0;  ///< seconds that a byte keeps it busy at least
  double cost = 0;  ///< seconds that kernels lose by a byte at least, if it is hidden beside them
  double both = 1;  ///< share of its rate that is left while the other direction is busy
};

/// A tensor that a kernel may use in slower memory, for a price.
struct SlowOperand {
  double seconds = 0;  ///< all such operands of a kernel that lie there take at least the sum of these
  double bytes = 0;
};

struct BoundKernel {
  double fast = 0;  ///< seconds with all in tier 0
  std::uint32_t operands = 0, operands_end = 0;
};

struct BoundUse {
  std::uint32_t kernel = 0;  ///< the number of kernels: the step's end
  bool reads = false, writes = false;
  bool slow = false;               ///< it may be used in slower memory
  std::uint32_t operand = kNever;  ///< its price there; none: it costs nothing
  double recompute = 0;            ///< seconds that computing again what it wrote takes at least
  double recompute_slow = 0;       ///< the same where it is written to slower memory
};

struct BoundTensor {
  TensorId id;
  double bytes = 0;
  bool persistent = false, given = false;
  std::uint32_t uses = 0, uses_end = 0;
};

/// Of most problems: more are slower to price and prove little more.
constexpr std::uint32_t kBlocks = 24;

struct Problem {
  Problem(const PlanRequest& request, const KernelClock& clock, std::uint32_t blocks = kBlocks);

  std::uint32_t moments() const { return static_cast<std::uint32_t>(kernels.size()); }
  std::uint32_t blocks() const { return static_cast<std::uint32_t>(block_begin.size() - 1); }

  std::vector<BoundKernel> kernels;
  std::vector<SlowOperand> operands;
  std::vector<BoundUse> uses;              ///< by tensor
  std::vector<BoundTensor> tensors;        ///< those that some kernel uses and that have bytes
  std::vector<std::uint32_t> block_of;     ///< by kernel; the step's end is in the last
  std::vector<std::uint32_t> block_begin;  ///< the first kernel of each; one more for the end
  double capacity = 0;
  double compute = 0;        ///< seconds
  bool addressable = false;  ///< kernels can use slower memory
  bool linked = false;       ///< tier 0 has links both ways
  Direction out, in;

 private:
  using UsesOfTensors = std::vector<std::vector<BoundUse>>;
  void add_kernel(const PlanRequest& request, const KernelClock& clock, std::uint32_t kernel,
                  std::span<const Use> step, UsesOfTensors& of_tensor);
  void add_tensors(const Graph& graph, const UsesOfTensors& of_tensor);
  void cut_blocks(std::uint32_t count);
};

}  // namespace terrace::bounds

// Which tensors can be recomputed at the end of a stretch without a use, and what has to stay for it.
#pragma once

#include <utility>
#include <vector>

#include "planners/baselines/swap_schedule.hpp"

namespace terrace {

class Recompute {
 public:
  Recompute(const PlanRequest& request, const StepUses& uses);

  /// The kernel that can recompute the tensor, if it writes nothing else and what it reads is, then, in fast
  /// memory and as it was. Else none.
  KernelId producer(const Absence& absence) const;
  /// Whether nothing that was chosen to be recomputed needs the tensor meanwhile.
  bool may_leave(const Absence& absence) const;

  void leaves(const Absence& absence);
  void choose(const Absence& absence, KernelId producer);

 private:
  bool is_there(TensorId tensor, std::uint32_t made, std::uint32_t needed) const;

  const Graph& graph_;
  std::vector<std::vector<std::uint32_t>> writers_;  ///< of each tensor, in order
  std::vector<std::uint32_t> last_;                  ///< use of each tensor
  std::vector<std::vector<Stretch>> out_;            ///< of each tensor
  std::vector<std::vector<std::uint32_t>> needed_;   ///< of each tensor: when it is computed with
};

}  // namespace terrace

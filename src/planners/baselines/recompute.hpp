// SPDX-License-Identifier: Apache-2.0
// Which tensors can be recomputed at the end of a stretch without a use, and which others have to stay in
// fast memory for that.
#pragma once

#include <utility>
#include <vector>

#include "planners/baselines/swap_schedule.hpp"

namespace terrace {

class Recompute {
 public:
  Recompute(const PlanRequest& request, const StepUses& uses);

  /// Returns the kernel that can recompute the tensor: it writes nothing else, and at that moment its inputs
  /// are in fast memory with the values they had. Returns none where there is no such kernel.
  KernelId producer(const Absence& absence) const;
  /// Returns whether no recomputation chosen so far needs the tensor during its absence.
  bool may_leave(const Absence& absence) const;

  void leaves(const Absence& absence);
  void choose(const Absence& absence, KernelId producer);

 private:
  bool is_there(TensorId tensor, std::uint32_t made, std::uint32_t needed) const;

  const Graph& graph_;
  std::vector<std::vector<std::uint32_t>> writers_;  ///< by tensor: kernels that write it, in order
  std::vector<std::uint32_t> last_;                  ///< by tensor: its last use
  std::vector<std::vector<Stretch>> out_;            ///< by tensor: chosen absences
  std::vector<std::vector<std::uint32_t>> needed_;   ///< by tensor: kernels before which it is an
                                                     ///< input of a recomputation
};

}  // namespace terrace

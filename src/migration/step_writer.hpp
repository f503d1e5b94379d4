// SPDX-License-Identifier: Apache-2.0
// Turns a residency into a plan, movement by movement; the planner says when each happens.
//
// A tensor that left keeps its region in its spill tier until a kernel writes it anew or nobody needs it, so
// that a later eviction costs no second transfer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "migration/plan_writer.hpp"
#include "migration/residency.hpp"

namespace terrace {

/// Finds evictions by the kernel of one of their ends; an end of kNever is left out.
class EvictionIndex {
 public:
  EvictionIndex(std::span<const Eviction> evictions, std::uint32_t kernels, std::uint32_t Eviction::*end);
  std::span<const std::uint32_t> at(std::uint32_t kernel) const {
    return {order_.data() + begin_[kernel], order_.data() + begin_[kernel + 1]};
  }

 private:
  std::vector<std::uint32_t> order_;
  std::vector<std::size_t> begin_;
};

class StepWriter {
 public:
  StepWriter(const PlanRequest& request, const StepUses& uses, const Residency& residency,
             std::string planner);

  /// Writes the regions that the step starts with.
  Result<void> begin();
  /// Starts writing the tensor to its spill tier. Returns the ticket.
  Result<std::uint32_t> store(TensorId tensor);
  /// Frees the tensor's region in fast memory.
  void drop(TensorId tensor);
  /// Starts bringing the tensor back. Returns the ticket.
  std::uint32_t fetch(TensorId tensor);
  void wait(std::uint32_t ticket) { writer_.wait(ticket); }
  bool is_fast(TensorId tensor) const { return writer_.has(tensor, {0}); }
  /// Returns the tier that the tensor is stored in. pre: it has a region there
  TierId spilled_to(TensorId tensor) { return writer_.spill_tier(tensor).value(); }
  Bytes fast_size(TensorId tensor) const { return writer_.size(tensor, {0}); }
  /// Returns the bytes of the kernel's operands that have no region yet: what it will write.
  Bytes missing(std::uint32_t kernel) const;
  /// Allocates those, runs the kernel and frees all regions that nobody needs any more.
  void run(std::uint32_t kernel);
  /// Runs the kernel a second time to recompute its one output. pre: its inputs are in fast memory
  void recompute(KernelId kernel);
  /// Restores the regions that the step started with, and packs.
  Draft finish(PackingEffort effort = kPlanEffort);

 private:
  void end_spilled(TensorId tensor);

  const PlanRequest& request_;
  const StepUses& uses_;
  const Residency& residency_;
  PlanWriter writer_;
};

}  // namespace terrace

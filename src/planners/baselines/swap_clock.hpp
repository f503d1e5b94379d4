// SPDX-License-Identifier: Apache-2.0
// When swaps would happen if kernels never waited: transfers out start as early and transfers in as late as
// the estimate of links (migration/busy_links.hpp) allows.
#pragma once

#include <span>
#include <vector>

#include "planners/baselines/swap_schedule.hpp"

namespace terrace {

class SwapClock {
 public:
  /// pre: there is a slower tier with links both ways
  SwapClock(const PlanRequest& request, const StepUses& uses);
  static bool possible(const PlanRequest& request);

  Seconds kernel(std::uint32_t kernel) const { return begin_[kernel + 1] - begin_[kernel]; }
  /// Returns the time of the transfers that a stretch takes.
  Seconds transfers(const Stretch& stretch, Bytes size) const;
  /// Returns what is left of a stretch when both its transfers are done; it is negative where the stretch is
  /// too short for them.
  Seconds spare(const Stretch& stretch, Bytes size) const;
  /// Sets leave, gone and back. Returns whether all are hidden: nothing waits for any of them.
  bool hide(std::span<Movement> movements, const Graph& graph) const;

 private:
  Seconds end_of(const Stretch& stretch) const { return begin_[stretch.until]; }
  Seconds begin_of(const Stretch& stretch) const {
    return stretch.after == kNever ? Seconds{0} : begin_[stretch.after + 1];
  }
  const Machine& machine_;
  TierId slow_;                 ///< the fastest tier with links to fast memory and back
  std::vector<Seconds> begin_;  ///< when each kernel begins; the end of the step stands there twice
  std::uint32_t kernels_;
};

}  // namespace terrace

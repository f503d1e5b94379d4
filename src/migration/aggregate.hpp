// SPDX-License-Identifier: Apache-2.0
// The aggregator of DeepTM (004 section III-C) for any planner's plan: small and neighbouring tensors lie
// side by side, and travel together.
//
//   batching      tensors up to a page that are used at least twice, made at one moment, share a page
//   adjoining     what travels between the same two kernels lies in the order of its next use, then of its
//                 uses, so that neighbours have equal or adjacent distances to their reuse
//   contiguous    those neighbours are one transfer
//   migration
//
// 004 moves pages when tensors are released so that neighbours stay neighbours. Offsets are settled before
// the step here, so that this is a matter of packing: regions of one transfer keep their common room until
// the last of them is freed, and nothing moves at run time.
//
// Whether it is worth it is the machine's to say: a plan is only replaced by one that the verifier accepts,
// that fits the budget and that the simulator, which knows what transfers of each size take, finds no slower.
#pragma once

#include "terrace/plan_request.hpp"

namespace terrace {

struct Aggregation {
  Plan plan;
  std::size_t transfers_before = 0, transfers = 0;  ///< copies of the plan
  std::size_t batched = 0;                          ///< regions that share a page with others
};

/// A plan with more than one lane of kernels, or whose copies wait for tickets, stays as it is. pre: the
/// verifier accepts the plan
Aggregation aggregated(const PlanRequest& request, Plan plan);

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// One attempt of the prefetch planner: puts the movements of a residency into time.
//
// It walks the kernels with an estimated clock. Where a kernel's room is not free yet, evictions are waited
// for; a tensor that is fetched ahead only takes room that no kernel before its use will need.
#pragma once

#include <vector>

#include "migration/step_writer.hpp"
#include "migration/walk.hpp"

namespace terrace {

class PrefetchWriter {
 public:
  PrefetchWriter(const PlanRequest& request, const KernelClock& clock, const StepUses& uses,
                 const Residency& residency, Bytes capacity);

  Result<Draft> write(PackingEffort effort);

 private:
  void plan_occupancy();
  Result<void> leave(std::uint32_t eviction, std::uint32_t next_kernel);
  void finish_leaving(std::uint32_t next_kernel);
  void make_room(std::uint32_t kernel);
  void fetch(std::uint32_t eviction, std::uint32_t kernel);
  void fetch_ahead(std::uint32_t kernel);
  void arrive(std::uint32_t kernel);
  bool keep(std::uint32_t eviction, std::uint32_t kernel);
  void compute(std::uint32_t kernel);
  std::int64_t size_of(TensorId tensor) const {
    return static_cast<std::int64_t>(writer_.fast_size(tensor).count);
  }

  const PlanRequest& request_;
  const StepUses& uses_;
  const Residency& residency_;
  const std::vector<Eviction>& evictions_;
  EvictionIndex after_, until_;
  StepWriter writer_;
  PlannedOccupancy planned_;
  migration::Walk walk_;                ///< departures are named by their eviction
  std::vector<Seconds> alone_;          ///< by kernel: its time in fast memory
  std::vector<std::uint32_t> fetches_;  ///< evictions that end in a fetch, the next needed first
  std::size_t next_fetch_ = 0;
  std::vector<std::uint32_t> tickets_;  ///< by eviction: its fetch's, or kNever
  std::vector<Seconds> arrival_;        ///< by eviction: when its fetch is done
};

}  // namespace terrace

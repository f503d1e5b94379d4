// One attempt of the prefetch planner: puts the movements of a residency into time.
//
// Walks the kernels with an estimated clock. Room for a kernel that is not there yet is waited for; what is
// fetched ahead only takes room that no kernel before its use will need.
#pragma once

#include <deque>
#include <vector>

#include "migration/occupancy.hpp"
#include "migration/step_writer.hpp"

namespace terrace {

class PrefetchWriter {
 public:
  PrefetchWriter(const PlanRequest& request, const KernelClock& clock, const StepUses& uses,
                 const Residency& residency, Bytes capacity);

  Result<Draft> write(PackingEffort effort);

 private:
  /// A tensor on its way out that still has its place in fast memory.
  struct Leaving {
    std::uint32_t eviction;
    std::uint32_t ticket;
    Seconds end;
    std::uint32_t late;  ///< the first kernel it is expected to be gone
  };

  void plan_occupancy();
  Result<void> leave(std::uint32_t eviction, std::uint32_t next_kernel);
  void finish_leaving(std::uint32_t next_kernel);
  void make_room(std::uint32_t kernel);
  void fetch(std::uint32_t eviction, std::uint32_t kernel);
  void fetch_ahead(std::uint32_t kernel);
  void arrive(std::uint32_t kernel);
  bool keep(std::uint32_t eviction, std::uint32_t kernel);
  void compute(std::uint32_t kernel);
  std::uint32_t kernel_at(Seconds time, std::uint32_t from) const;
  Seconds transfer(TensorId tensor, bool out);

  const PlanRequest& request_;
  const StepUses& uses_;
  const Residency& residency_;
  const std::vector<Eviction>& evictions_;
  std::int64_t capacity_;
  EvictionIndex after_, until_;
  StepWriter writer_;
  PlannedOccupancy planned_;
  std::vector<Seconds> begin_;          ///< of each kernel, if nothing ever waited
  std::vector<std::uint32_t> fetches_;  ///< gaps that end in a fetch, the next needed first
  std::size_t next_fetch_ = 0;
  std::vector<std::uint32_t> tickets_;  ///< of each gap's fetch, or kNever
  std::vector<Seconds> arrival_;        ///< of each gap's fetch
  std::deque<Leaving> leaving_;         ///< in the order of their transfers
  std::vector<Seconds> free_at_;        ///< of each tier's lanes, out and in
  Seconds now_{0};
  std::int64_t used_ = 0;
};

}  // namespace terrace

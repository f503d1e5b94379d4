// SPDX-License-Identifier: Apache-2.0
// Which values are recomputed, when and how often, where kernels use fast memory alone: goes through a step
// with the memory it may take, and where that is full evicts what is cheapest to recompute for the bytes and
// the time that it gives back (the price of DTR, Kirisame et al., with a step's future in the place of its
// past). Evicted values are recomputed just before they are needed, with whatever they need, and are then
// values as any other: they may be evicted again.
//
// Movement shares the work. What has left over the links at some moment left since the step's start and comes
// back until its end, so the bytes that links carry while kernels run are the smaller of both: that much more
// than fast memory holds may be alive then, and which tensors leave is decided later (placement.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "bounds/problem.hpp"
#include "planners/best/recompute_closure.hpp"
#include "planners/best/recompute_rewrite.hpp"

namespace terrace::best {

/// Which persistent tensors are in slower memory but while kernels use them.
enum class StatesAway { none, used_once, all };

class EvictionWalk {
 public:
  /// Borrows the graph, its uses and the problem, which is that of the request.
  EvictionWalk(const PlanRequest& request, const StepUses& uses, const bounds::Problem& problem);

  struct Options {
    double hidden = 1;    ///< share of what links can carry beside kernels that is counted on
    double patience = 1;  ///< exponent of the time until an evicted value is needed again
    StatesAway states = StatesAway::none;
    bool operator==(const Options&) const = default;
  };
  /// What runs again, in order. None where nothing does, or where something that was evicted cannot.
  std::vector<RecomputeBatch> run(const Options& options);

  /// Bytes of persistent tensors that are not in fast memory all the time.
  double bytes_away(StatesAway states) const;

 private:
  void begin(const Options& options);
  bool is_away(std::uint32_t tensor, StatesAway states) const;
  double room_at(std::uint32_t kernel) const;
  std::uint32_t next_read(std::uint32_t tensor, std::uint32_t kernel) const;
  void take(std::uint32_t tensor);
  void drop(std::uint32_t tensor);
  bool recompute(TensorId tensor, std::uint32_t before);
  void run_kernel(std::uint32_t kernel, std::uint32_t now);
  void make_room(double bytes, std::uint32_t now);
  void find_needs(std::uint32_t now);
  void need_inputs(std::uint32_t needed);
  std::uint32_t cheapest(std::uint32_t now);

  const Graph& graph_;
  const StepUses& uses_;
  const bounds::Problem& problem_;
  RecomputeClosure closure_;
  std::vector<std::vector<std::uint32_t>> reads_;  ///< by tensor: kernels, ascending
  std::vector<std::uint32_t> touches_;             ///< by tensor: how many kernels use it
  std::vector<std::uint32_t> candidates_;          ///< tensors that may be evicted
  std::vector<double> begin_;  ///< by kernel: when it begins if nothing waits or runs twice

  Options options_;
  double carried_ = 0;  ///< bytes that links carry in a second, beside states
  double used_ = 0;     ///< bytes
  std::vector<bool> at_hand_;
  std::vector<std::uint32_t> locks_;  ///< by tensor: how many of the next runs use it
  std::vector<std::uint32_t> need_;   ///< by tensor: the kernel for which its value is needed next
  std::vector<RecomputeBatch> batches_;
};

}  // namespace terrace::best

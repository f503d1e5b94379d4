// SPDX-License-Identifier: Apache-2.0
// Runs one step of a graph against a manager whose tiers hold nothing, so that the manager's policy makes
// every decision, and records it as a plan. The program whose step it is gives the hints of 003 section
// III-E: before a kernel, what it reads and writes; after a forward kernel, that what it only read rests;
// after the last use, that a tensor is dead. A kernel's scratch is its own and goes with it.
//
// What a plan needs and no policy knows of is settled here:
//   - A step is repeated, so tensors that outlive it must end where they begin. They are created in the start
//     tiers that are asked for, in the order in which a step before would have used them last.
//   - Heaps are never compacted: a plan moves nothing within a tier. (003 defragments between steps, which a
//     rehearsal does by beginning with empty heaps.)
//   - Where a kernel's operands find no room around each other, fast memory is emptied and they come one
//     after the other. A manager of real memory would compact.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/step_uses.hpp"
#include "planners/baselines/directed_policy.hpp"
#include "planners/baselines/step_recorder.hpp"
#include "terrace/manager.hpp"

namespace terrace {

/// By tensor: the manager's tier in which a persistent one begins, or none: where the policy puts it.
using StartTiers = std::vector<std::optional<TierId>>;

struct Recording {
  Draft draft;
  Bytes managed;    ///< that the manager counts for the step
  Bytes undefined;  ///< of these: copies of what holds nothing, which the plan leaves out
  // What the plan copies beyond them for the step to end as it begins.
  Bytes brought;  ///< of tensors that outlive it
  Bytes cleared;  ///< of results
  Bytes copied() const { return managed - undefined + brought + cleared; }
};

/// Made beforehand, results lie beside what is given, and need not be cleared away at the end unless they
/// have to leave in between.
enum class Results { made_when_written, made_beforehand };

class RehearsedStep {
 public:
  /// `tiers`: those of the machine that the manager has. pre: all are linked with each other
  RehearsedStep(const PlanRequest& request, const StepUses& uses, const std::vector<TierId>& tiers,
                std::unique_ptr<Policy> policy, std::string planner);
  RehearsedStep(const RehearsedStep&) = delete;

  /// Fails where the policy finds no room.
  Result<void> run(const StartTiers& tiers, Results results);
  /// Returns where the step leaves what outlives it.
  StartTiers left() const;
  /// Tensors that cannot end where they began, and the next slower start tier of each; none: it has no slower
  /// one. The step is no plan where there are any.
  struct Astray {
    TensorId tensor;
    std::optional<TierId> next;
  };
  std::vector<Astray> astray() const;
  /// pre: run() was fine, nothing is astray
  Result<Recording> finish() &&;

 private:
  struct Wanted {
    TensorId tensor;
    Access access;
  };
  Result<void> create(TensorId tensor);
  Result<void> create_persistent(const StartTiers& tiers);
  Result<void> create_given();
  Result<void> create_results();
  void begin();
  Result<void> run(std::uint32_t kernel);
  Result<void> announce(std::uint32_t kernel);
  void compute(std::uint32_t kernel);
  void leave(std::uint32_t kernel);
  Result<std::vector<Pin>> hold(const std::vector<Wanted>& wanted);
  Result<std::vector<Pin>> pin_each(const std::vector<Wanted>& wanted);
  void order(std::function<void(Regions&)> errand);
  void empty_fast_memory();
  void drop_secondaries();
  bool is_empty(TensorId tensor) const { return request_.graph[tensor].bytes.count == 0; }
  Bytes managed() const;

  const PlanRequest& request_;
  const StepUses& uses_;
  const std::vector<TierId> tiers_;
  StepRecorder recorder_;
  DirectedPolicy* policy_;  ///< the manager's
  std::unique_ptr<Manager> manager_;
  std::vector<bool> exists_;                      ///< by tensor
  std::vector<std::optional<ObjectId>> objects_;  ///< by tensor; one without bytes has none
  std::vector<TierId> held_;                      ///< by tensor: the machine's tier where it was last pinned
  Bytes managed_before_;
};

}  // namespace terrace

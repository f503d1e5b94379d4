// SPDX-License-Identifier: Apache-2.0
// One step of a graph as a sequence of decisions (004 section IV-B, C): the environment in which an agent
// learns, and what the planner `heat` decides by its rule alone.
//
//   decision    where one tensor goes: when the step starts, before a kernel uses it, or after one did
//   action      a tier; 0 is fast memory
//   rollout     one episode: decisions in order, from the step's start to its end
//   closed      said of a decision that has one possible answer: it is not asked
//
// 004 asks about every living tensor at every kernel. A tensor that leaves does so best right after a use,
// and one that comes does so best right before the next, so that only these moments are asked about. A tensor
// has one slower home in a step: the tier of the first decision that sends it to a slower one.
//
// What is idle in fast memory makes room for what is used now or is hotter, the coldest first. 004 asks about
// every living tensor at every kernel instead; here the idle one leaves as if that had been decided right
// after its last use, so that the earlier answer is changed and the room is free from there on. Where that is
// not enough for a kernel's operand, others that the kernel only reads leave, too, and are read in slower
// memory.
//
// An action for which there is no room even so is answered with a large negative reward and replaced by one
// that fits, where 004 ends the episode: a graph with thousands of decisions would hardly ever be seen to its
// end. Environments are constant once made, and any number of rollouts may borrow one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "migration/plan_writer.hpp"
#include "migration/schedule.hpp"
#include "planners/deeptm/heat.hpp"

namespace terrace::deeptm {

/// Whether kernels stand still while tensors move (004 eq. 4) or transfers run beside them (eq. 5-7).
enum class Copies { synchronous, asynchronous };
/// What an action earns at once: eq. 8 of 004, or the seconds of the step that it costs.
enum class Reward { share, time };

struct EnvironmentRules {
  HeatRules heat;
  Copies copies = Copies::asynchronous;
  Reward reward = Reward::time;
};

struct Decision {
  enum class When : std::uint8_t { start, before, after };
  When when;
  std::uint32_t unit;
  std::uint32_t visit = kNever;  ///< of the unit; kNever at the start
  double heat = 0;
};

class Environment {
 public:
  /// Borrows the request.
  Environment(const PlanRequest& request, const EnvironmentRules& rules);
  Environment(const Environment&) = delete;

  const PlanRequest& request() const { return request_; }
  const EnvironmentRules& rules() const { return rules_; }
  const migration::StepView& view() const { return view_; }
  const migration::Units& units() const { return units_; }
  const migration::Visits& visits() const { return visits_; }
  /// All decisions in order, those that may turn out to be closed, too. At one moment the hottest come first.
  const std::vector<Decision>& decisions() const { return decisions_; }
  /// The places among them of the decisions before and after a visit.
  std::size_t decision_before(std::uint32_t visit) const { return decision_before_[visit]; }
  std::size_t decision_after(std::uint32_t visit) const { return decision_after_[visit]; }
  /// The heat of a unit that waits for its next visit when a kernel begins.
  double idle_heat(std::uint32_t unit, std::uint32_t next, std::uint32_t kernel) const;
  std::uint32_t tiers() const { return static_cast<std::uint32_t>(request_.machine.tiers.size()); }
  /// Whether what the tensor holds before this visit is read in it or later.
  bool is_needed(std::uint32_t visit) const { return needed_[visit]; }
  /// How long the longest transfer of one tensor takes, by which costs are scaled.
  Seconds longest_transfer() const { return longest_transfer_; }
  /// What a unit's transfer takes.
  Seconds transfer(const migration::Unit& unit, TierId from, TierId to) const;

  /// Writes a finished rollout as a plan.
  Result<Draft> write(const migration::Units& units, migration::Schedule schedule, Bytes capacity,
                      PackingEffort effort) const;

 private:
  void list_decisions();
  void find_needed();

  const PlanRequest& request_;
  EnvironmentRules rules_;
  migration::StepView view_;
  migration::Units units_;
  migration::Visits visits_;
  HeatTable heat_;
  std::vector<Decision> decisions_;
  std::vector<std::size_t> decision_before_, decision_after_;  ///< by visit
  std::vector<bool> needed_;                                   ///< by visit
  Seconds longest_transfer_{0};
};

}  // namespace terrace::deeptm

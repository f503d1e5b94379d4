// SPDX-License-Identifier: Apache-2.0
// The verifier: runs a plan on abstract state and proves that it is safe.
//
// What it proves, at every instruction and for every tier: regions lie within the budget, on the tier's
// granularity, and no two overlap; every operand of a kernel has a region in the stated tier, which its
// engine reaches, complete, and holds exactly the value the kernel reads in the graph's own order, so that
// reordering and recomputation change no bit; nothing is freed, written or read while a transfer or kernel
// uses it otherwise; every ticket is used once and complete at the end; every kernel runs; the step ends as
// it began, with every result at hand. All this holds in every course of the step that the plan's lanes
// allow, and a plan is refused only where some course is not safe. It shares no code with planners, simulator
// or executor.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "terrace/plan.hpp"

namespace terrace {

/// Where a plan is wrong: in what it starts with, in an instruction, or in what the step leaves.
enum class Moment { start, instruction, end };

struct Violation {
  std::size_t instruction = 0;  ///< its place: 0 at the start, the number of instructions at the end
  std::string reason;           ///< a sentence with names and bytes
  Moment moment = Moment::instruction;
};

/// `at instruction 12 (free x fast): there is no region of x in fast`
std::string to_text(const Violation& violation, const Graph& graph, const Machine& machine, const Plan& plan);

/// All of them, as far as what follows one still makes sense; at most `limit`. Fingerprints are not looked
/// at. pre: validate(graph), validate(machine), limit > 0
std::vector<Violation> violations(const Graph& graph, const Machine& machine, const Plan& plan,
                                  std::size_t limit = 100);

/// A plan that was proven safe. The executor takes nothing else.
class VerifiedPlan {
 public:
  const Plan& plan() const { return plan_; }
  const Plan* operator->() const { return &plan_; }

 private:
  friend Result<VerifiedPlan> verify(const Graph& graph, const Machine& machine, Plan plan);
  explicit VerifiedPlan(Plan plan) : plan_(std::move(plan)) {}
  Plan plan_;
};

/// Fails with the first violation, and where the plan was made for another graph or machine.
Result<VerifiedPlan> verify(const Graph& graph, const Machine& machine, Plan plan);

}  // namespace terrace

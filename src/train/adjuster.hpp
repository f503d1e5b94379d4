// SPDX-License-Identifier: Apache-2.0
// Adjuster: compares executed steps with what was predicted, and plans again when the machine has drifted.
//
//   Adjuster adjuster(graph, machine, profile, plan, planner_named("best"));
//   trainer.step();
//   if (const auto better = adjuster.observe(trainer.timeline()))
//     trainer.change_plan(better->plan, adjuster.machine(), folder).value();
//
// Drifted means: over several steps kernels or a link took so much longer, or shorter, than predicted that
// noise does not explain it. The machine is corrected then and, where that promises a gain, the plan changed.
// For a planner that learns, each kernel's time is corrected by itself: its agent repeats the step as
// measured, which feeds what it remembers, and trains on (the online correction of 004 section V). One thread
// at a time.
#pragma once

#include <optional>

#include "terrace/pipeline.hpp"
#include "terrace/verify.hpp"
#include "train/drift.hpp"

namespace terrace {

/// What is corrected of the profile: all kernels by one factor, or each that ran by what it took.
enum class Correction { one_factor, each_kernel };

struct AdjusterOptions {
  std::size_t steps = 5;   ///< how many are observed before anything is concluded
  double tolerance = 1.2;  ///< a factor up to this is taken for noise
  double gain = 0.02;      ///< the least share of the step's time for which a plan is changed
  Correction correction = Correction::one_factor;
};

/// What suits a planner of this name.
AdjusterOptions adjuster_options(std::string_view planner);

struct Adjustment {
  VerifiedPlan plan;
  Drift drift;
  Seconds before{0}, after{0};  ///< a step under the old and the new plan on the machine as it turned out
};

class Adjuster {
 public:
  /// `planner` makes the plans that may replace the first. The graph outlives this. pre: the plan was made
  /// for these
  Adjuster(const Graph& graph, Machine machine, Profile profile, Plan plan, PlanFunction planner,
           AdjusterOptions options = {});

  /// Takes in one executed step, and answers with a plan where the present one should be changed. Every step
  /// under the present plan is to be observed; after an answer, steps are those of the new plan.
  std::optional<Adjustment> observe(const Timeline& measured);
  /// The machine as it is believed to be, for which the last plan was made.
  const Machine& machine() const { return machine_; }

 private:
  std::optional<Adjustment> plan_again(const Drift& drift);
  std::optional<Adjustment> better_plan(const Drift& drift) const;
  void begin_observing();
  bool has_drifted(const Drift& drift) const;

  const Graph& graph_;
  Machine machine_;
  Profile profile_;
  Plan plan_;
  const PlanFunction planner_;
  const std::vector<Bytes> budget_;  // the first plan's: a plan that needs less does not give the rest away
  const AdjusterOptions options_;
  Timeline predicted_;
  bool first_ = true;  // the first step under a plan finds cold caches, so it says nothing
  std::vector<Drift> drifts_;
  std::vector<Timeline> measured_;  // of the same steps, where each kernel is corrected
};

}  // namespace terrace

// Adjuster: compares executed steps with what was predicted, and plans again when the machine has drifted.
//
//   Adjuster adjuster(graph, machine, profile, plan);
//   trainer.step();
//   if (const auto better = adjuster.observe(trainer.timeline()))
//     trainer.change_plan(better->plan, adjuster.machine(), folder).value();
//
// Drifted means: over several steps kernels or a link took so much longer, or shorter, than predicted that
// noise does not explain it. The machine is corrected then and, where that promises a gain, the plan changed.
// One thread at a time.
#pragma once

#include <optional>

#include "terrace/planner.hpp"
#include "terrace/verify.hpp"
#include "train/drift.hpp"

namespace terrace {

struct AdjusterOptions {
  std::size_t steps = 5;   ///< that are observed before anything is concluded
  double tolerance = 1.2;  ///< factors within it are no drift
  double gain = 0.02;      ///< of the step's time, for which a plan is changed
};

struct Adjustment {
  VerifiedPlan plan;
  Drift drift;
  Seconds before{0}, after{0};  ///< a step under the old and the new plan on the machine as it turned out
};

class Adjuster {
 public:
  /// The graph outlives it. pre: the plan was made for these
  Adjuster(const Graph& graph, Machine machine, Profile profile, Plan plan, AdjusterOptions options = {});

  /// To be told of every step under the plan, and under the new one once it has answered with one.
  std::optional<Adjustment> observe(const Timeline& measured);
  /// As it is believed to be: what the last plan was made for.
  const Machine& machine() const { return machine_; }

 private:
  std::optional<Adjustment> plan_again(const Drift& drift);
  std::optional<Adjustment> better_plan(const Drift& drift) const;
  void begin_observing();

  const Graph& graph_;
  Machine machine_;
  Profile profile_;
  Plan plan_;
  const std::vector<Bytes> budget_;  // the first plan's: a plan that needs less does not give the rest away
  const AdjusterOptions options_;
  Timeline predicted_;
  bool first_ = true;  // steps of a plan are not like the others when they find cold caches
  std::vector<Drift> drifts_;
};

}  // namespace terrace

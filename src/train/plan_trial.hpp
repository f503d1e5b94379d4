// SPDX-License-Identifier: Apache-2.0
// PlanTrial: Sentinel's test-and-trial (002 section 4.4.4) in real steps of training, remembered for the runs
// to come.
//
//   PlanTrial trial(request);
//   Trainer trainer = Trainer::start(program, trial.plan(), machine, options).value();
//   while (!trial.done()) {
//     trainer.step();
//     if (trial.observe(seconds)) trainer.change_plan(trial.plan(), machine, folder).value();
//   }
//
// Intervals whose kernels wait for migrations are tried one by one, waiting and leaving; in the end what was
// found is compared with the plan that only predicts. Each is given a few steps, of which the shortest
// counts: the first after a change finds cold caches, and what else a shared computer does only makes steps
// longer. No step is spent where there is nothing to choose: by another planner, with an option `end`, where
// kernels cannot use slower tiers, where both answers make the same plan, where an earlier run has decided.
// One thread at a time.
#pragma once

#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "planners/sentinel/trial.hpp"
#include "terrace/trainer.hpp"
#include "terrace/verify.hpp"

namespace terrace {

struct PlanTrialOptions {
  std::uint32_t repeats = 2;  ///< how many steps each plan is given
  std::size_t intervals =
      10;               ///< that are tried at most, those that wait longest (002: fewer than 10 came up)
  double share = 0.01;  ///< of a step that an interval must wait to be tried: less is noise
};

class PlanTrial {
 public:
  struct Request {
    const Graph& graph;
    const Machine& machine;
    const Profile& profile;
    const std::vector<Bytes>& budget;
    const std::string& planner;     ///< as make_plan takes it
    const VerifiedPlan& predicted;  ///< what it made of these
    /// The steps of training: a trial that takes more would end undecided, and is not begun.
    std::uint64_t steps = std::numeric_limits<std::uint64_t>::max();
    std::string compute = {};          ///< what computes: compute_key
    std::filesystem::path store = {};  ///< of decisions; empty: none is kept
  };

  /// Looks for a decision and for what there is to try. Takes a while: it makes plans. Copies what it needs.
  explicit PlanTrial(const Request& request, const PlanTrialOptions& options = {});

  bool done() const { return stage_ == Stage::done; }
  /// To be carried out now. Of a trial that has begun all have the same budget, so that one takes another's
  /// place.
  const VerifiedPlan& plan() const { return plan_; }
  /// Takes how long the step under plan() took. Returns whether the plan has changed. pre: !done()
  bool observe(Seconds step);

  /// Spent so far; those still to come, at most.
  std::uint32_t steps() const { return steps_; }
  std::uint32_t steps_left() const;
  /// Late ones that it began with.
  std::size_t intervals() const { return intervals_; }
  /// The value of the planner's option `end` that was decided; `trial` where nothing was. pre: done()
  const std::string& answer() const { return answer_; }
  /// The decision is an earlier run's.
  bool remembered() const { return remembered_; }
  /// Returns what the user should know, such as why a decision is not kept; mostly empty.
  const std::string& note() const { return note_; }
  /// Nothing is tried: the plan is the one that only predicts, in as much as that needs. pre: no step yet
  void give_up(const std::string& reason);

  const Profile& profile() const { return profile_; }

 private:
  enum class Stage { answers, predicted, done };
  struct Candidate {
    std::string end;
    VerifiedPlan plan;
  };

  bool recall();
  void begin(const std::vector<std::uint32_t>& late, std::uint64_t steps);
  Result<Plan> make(const std::string& end) const;
  void open_room(const std::vector<const Plan*>& known);
  std::optional<Candidate> candidate(const std::string& end, Plan plan) const;
  void find_challenger();
  bool heed_answer(Seconds step);
  bool heed_predicted(Seconds step);
  bool change_to(const Candidate& candidate);
  bool decide(const Candidate& best);

  const Graph graph_;  // the trainer takes the one it began with
  const Machine machine_;
  const Profile profile_;
  const std::string planner_;
  const PlanTrialOptions options_;
  const std::filesystem::path store_;
  const std::string compute_;
  std::string question_;
  const std::vector<Bytes> budget_;
  std::vector<Bytes> room_;  // that is open while plans change
  Stage stage_ = Stage::done;
  const VerifiedPlan as_planned_;  // what only predicts, in as much as it needs
  VerifiedPlan plan_;
  sentinel::Trial trial_{{}};
  std::optional<Candidate> predicted_, standing_, challenger_;
  std::string running_, answer_, note_;
  Seconds predicted_step_ = Seconds::max();
  std::uint32_t steps_ = 0, predicted_tried_ = 0;
  std::size_t intervals_ = 0;
  bool remembered_ = false;
};

/// A trainer under the trial's plan. A trial keeps more open than a plan needs, for those to come; where that
/// is refused there is none: it gives up and says why, and training starts without. Fails as Trainer::start.
Result<Trainer> start_on_trial(PlanTrial& trial, const Program& program, const Machine& machine,
                               const TrainerOptions& options);

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// `terrace train`, in parts: what is asked (TrainRequest), what is made ready for it (TrainSetup), what
// happened (TrainRecord), and how that is told.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/interrupt.hpp"
#include "cli/progress.hpp"
#include "cli/workload_options.hpp"
#include "data/buckets.hpp"
#include "data/fashion_mnist.hpp"
#include "data/lengths.hpp"
#include "terrace/pipeline.hpp"
#include "train/adjuster.hpp"
#include "train/bucket_trainer.hpp"
#include "train/plan_trial.hpp"
#include "train/training_data.hpp"

namespace terrace::cli {

struct TrainRequest : WorkloadOptions {
  std::int64_t steps = 20;
  std::uint64_t seed = 0;
  std::optional<float> learning_rate;
  std::string schedule = "constant";
  std::string data = "synthetic", data_folder;
  bool evaluate = false;
  std::string save, load, json;  ///< files; empty: none
  std::string fast, planner;     ///< empty: all memory it needs, the first of the list
  bool same_bits = false;
  bool adjust = true;      ///< plan again when the computer has drifted
  std::string checkpoint;  ///< a folder; empty: none
  std::int64_t checkpoint_every = 1;
  std::string lengths;  ///< of sequences; empty: all have the same
  std::size_t buckets = kMostBuckets;
};

/// The plan that a run within a budget follows.
struct PlannedRun {
  Machine machine;
  Planned planned;
  Bytes graph_peak;                      ///< before kernels were split
  std::size_t split_kernels = 0;         ///< to fit in the budget
  std::unique_ptr<Adjuster> adjuster;    ///< none: the plan stays
  std::unique_ptr<PlanTrial> trial;      ///< none: nothing is left to try
  bool trial_remembered = false;         ///< an earlier run did it
  std::optional<Seconds> counting = {};  ///< how long the profiling step took; none: there was none
};

/// Everything training needs. The data borrow the pictures, so both stay where they are.
struct TrainSetup {
  std::int64_t batch = 1;
  float learning_rate = 0;
  std::unique_ptr<LabelledImages> pictures, test_pictures;
  std::unique_ptr<TrainingData> data;
  std::optional<PlannedRun> plan;          ///< none: everything in memory; of several buckets the largest's
  std::optional<Lengths> lengths;          ///< none: all sequences have the same
  std::shared_ptr<BucketTrainer> buckets;  ///< where lengths change
  std::shared_ptr<Trainer> trainer;        ///< that of the buckets, where there are any
  std::filesystem::path checkpoint;        ///< empty: none is written
};

/// Throws BadInput where something asked for is not there or does not fit, as early as it can be known.
TrainSetup set_up(const TrainRequest& request, ProgressLine& line);

/// The plan was changed.
struct PlannedAgain {
  std::int64_t step = 0;  ///< after it
  Drift drift;
  Seconds before{0}, after{0};  ///< a step, as predicted
};

/// What steps were spent on by the planner's trial.
struct TrialRecord {
  std::uint32_t steps = 0;
  std::size_t intervals = 0;
  std::string answer;  ///< empty: training ended first
};

struct TrainRecord {
  enum class End { complete, interrupted, diverged } end = End::complete;
  std::int64_t first_step = 0;          ///< those before it were done by an earlier run
  std::vector<double> step_seconds;     ///< of computing alone
  std::vector<double> exposed_seconds;  ///< of each step, in which no kernel ran
  std::vector<float> loss;
  Seconds elapsed{};           ///< data and all
  std::vector<Traffic> moved;  ///< by a step
  std::vector<Bytes> peak;     ///< of each tier
  Bytes resident;              ///< the most this process had
  std::optional<Bytes> group;  ///< the most its control group had, where it is in one
  std::vector<PlannedAgain> planned_again;
  TrialRecord trial;
  std::optional<double> test_accuracy;
  std::optional<bool> same_bits;
  std::string difference;  ///< the first that was found

  /// Plans may change: the most that any of them had in each tier.
  void note_peak(const std::vector<Bytes>& of) {
    peak.resize(of.size());
    for (std::size_t i = 0; i < of.size(); ++i) peak[i] = std::max(peak[i], of[i]);
  }
  std::size_t steps() const { return loss.size(); }
  /// Returns the steps of training, those of earlier runs included.
  std::int64_t steps_done() const { return first_step + static_cast<std::int64_t>(steps()); }
};

TrainRecord train(const TrainRequest& request, TrainSetup& setup, const Interrupt& interrupt,
                  ProgressLine& line);

/// The folder's file, made ready to be written. Throws BadInput where that cannot be.
std::filesystem::path checkpoint_file(const TrainRequest& request);
/// Steps of earlier runs, from where this one will go on; 0 where they left no checkpoint.
std::int64_t steps_kept(const TrainSetup& setup);
/// Goes on where an earlier run ended, if it left a checkpoint. Throws BadInput where that is of another run.
void resume(const TrainRequest& request, TrainSetup& setup);
/// Written behind the next step. Throws where that, or the one before it, fails.
void start_checkpoint(const TrainSetup& setup);
void finish_checkpoint(const TrainSetup& setup);

/// As the trainer does; a disk that fails without harm is told, too.
Result<void> change_plan(TrainSetup& setup, const VerifiedPlan& plan, const Machine& machine);

/// Before training: gives the run the plan that the planner's trial begins with, or one that was remembered.
/// `steps`: that are still to be trained.
void begin_trial(std::int64_t steps, const Program& program, const Profile& profile,
                 const std::vector<Bytes>& budget, PlannedRun& run, ProgressLine& line);
/// Takes the memory; where that is refused for what a trial needs beyond a plan, without it.
Trainer start_on_plan(Program program, const TrainerOptions& options, PlannedRun& run, ProgressLine& line);
/// After a step: changes the plan as the trial asks for. Whether the step was one of the trial's; after the
/// last of them the run begins to adjust.
bool try_plans(const TrainRequest& request, TrainSetup& setup, TrainRecord& record, ProgressLine& line);

/// From now on the plan follows the computer, unless the request keeps it. The graph outlives the run.
void begin_adjusting(const TrainRequest& request, const Graph& graph, Profile profile, PlannedRun& run);
/// After a step: changes the plan where the computer has drifted from what it was made for.
void adjust(TrainSetup& setup, TrainRecord& record, ProgressLine& line);

/// The lengths that are asked for. Throws BadInput where the model cannot have them.
std::optional<Lengths> lengths_of(const TrainRequest& request);
/// Returns the graph of the longest sequences.
Graph largest_graph(const TrainRequest& request, const Lengths& lengths);
void start_buckets(const TrainRequest& request, const TrainerOptions& options, TrainSetup& setup,
                   ProgressLine& line);
/// The same graphs with everything in memory.
void start_unlimited_buckets(const BucketTrainer& limited, const TrainerOptions& options, TrainSetup& setup);
/// Before a step: switches to the bucket of its sequences, where lengths change.
void use_bucket(const TrainRequest& request, const TrainSetup& setup, std::int64_t step);
nlohmann::json buckets_json(const TrainRequest& request, const TrainSetup& setup, const TrainRecord& record);
void print_buckets(const TrainRequest& request, const TrainSetup& setup, const TrainRecord& record);

/// Trains the same with everything in memory and compares every loss and every tensor that outlives steps.
void compare_bits(const TrainRequest& request, TrainSetup& setup, TrainRecord& record,
                  const Interrupt& interrupt, ProgressLine& line);

nlohmann::json to_json(const TrainRequest& request, const TrainSetup& setup, const TrainRecord& record);
void print_summary(const TrainRequest& request, const TrainSetup& setup, const TrainRecord& record);

}  // namespace terrace::cli

// SPDX-License-Identifier: Apache-2.0
// BucketTrainer: trains a network whose graph changes, in one budget, with a profile and a plan for each
// graph: one for each bucket of input sizes (002 section 4.4.5), and one for each path through control flow.
//
//   BucketTrainer buckets = BucketTrainer::start(request).value();
//   buckets.use(length).value();  // switches where the length is of another bucket
//   buckets.trainer().step();
//   buckets.use_path("short", [] { return short_cut(); }).value();
//
// The largest bucket is made first: its peak is what a percentage of the budget is of, and its tiers serve
// all. Under a budget every bucket is profiled before these are opened, so that measuring takes no memory
// beside them. A bucket is planned when the first input of its size comes, and kept from then on, its kernels
// ready. A path is unknown until it is met: it is profiled then, in the memory of these tiers. Weights,
// states and the number of steps go over to the bit. One thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "terrace/pipeline.hpp"
#include "terrace/trainer.hpp"
#include "train/adjuster.hpp"

namespace terrace {

struct BucketRequest {
  std::vector<std::int64_t> sizes;  ///< ascending
  std::function<Result<Graph>(std::int64_t size)> graph_of;
  unsigned threads = 0;
  std::string machine = "this";
  std::vector<std::string> slow = {};
  std::string fast = {};  ///< as fast_budget.hpp says; empty: everything in memory
  std::string planner = {};
  std::optional<AdjusterOptions> adjust = {};  ///< plans follow the computer; none: they stay
  TrainerOptions options = {};
  ProgressSink progress = no_progress;
};

/// One of the graphs that the trainer switches between, with its plan.
struct TrainedGraph {
  std::optional<std::size_t> number = {};   ///< in the trainer; none: it was not needed yet
  std::uint64_t made_at = 0;                ///< how many steps were done when it was first needed and planned
  std::size_t split_kernels = 0;            ///< how many are worked on in parts, to fit in the budget
  std::optional<Planned> planned = {};      ///< none: everything in memory, or not made yet
  std::unique_ptr<Adjuster> adjuster = {};  ///< none: its plan stays
};

struct SizeBucket : TrainedGraph {
  struct Compiled {
    Workload workload;
    std::optional<Profile> profile;  ///< none: everything will be in memory
  };
  std::int64_t size = 0;
  std::optional<Compiled> compiled = {};  ///< until it is needed, where it is already
};

struct ControlPath : TrainedGraph {
  std::string name;
};

class BucketTrainer {
 public:
  /// Fails as `prepare`, `budget_of`, `fit`, `profile_of`, `plan_of` and `Trainer::start` do for the largest
  /// bucket, and on a machine that is not this computer. pre: there are sizes
  static Result<BucketTrainer> start(BucketRequest request);
  /// The same from the first step on with everything in memory: buckets have the same kernels, split as here,
  /// so that bits can be compared. Paths are met anew, and not split. pre: this has a budget
  Result<BucketTrainer> unlimited(const TrainerOptions& options) const;

  Trainer& trainer() { return *trainer_; }
  /// The bucket of an input of this size is the one that is trained from here on. Fails, and changes nothing,
  /// where it cannot be made; throws as Trainer::use_graph does. pre: the largest bucket holds it
  Result<void> use(std::int64_t size);
  /// The same for a path through the network. One of a new name is asked for its graph, whose state is that
  /// of the largest bucket's or some of it, and profiled as Trainer::measure does; one that is known is not
  /// asked again. Fails, too, where its state is no part of that one, or it does not fit in the tiers; where
  /// fast memory is below the least it needs, it is not profiled first.
  Result<void> use_path(const std::string& name, const std::function<Result<Graph>()>& graph);

  /// After a step: another plan for the graph that is trained, where the computer has drifted from what its
  /// own was made for. Whoever follows it says so in `in_training`. The step after a switch says nothing: it
  /// finds cold caches.
  std::optional<Adjustment> observe();
  TrainedGraph& in_training();

  const std::vector<SizeBucket>& buckets() const { return buckets_; }
  const SizeBucket& largest() const { return buckets_.back(); }
  /// The bucket that is trained, or was trained last before a path.
  const SizeBucket& current() const { return buckets_[current_]; }
  /// The paths in the order in which they were met.
  const std::vector<ControlPath>& paths() const { return paths_; }
  const Machine& machine() const { return machine_; }
  /// The most bytes live at once in the largest bucket's graph, before kernels were split.
  Bytes peak() const { return peak_; }
  /// Returns how long it took, each time, to carry the state from one graph to another.
  const std::vector<Seconds>& switches() const { return switches_; }

 private:
  explicit BucketTrainer(BucketRequest request);
  Result<void> start_unlimited(Program program);
  Result<void> start_planned();
  Result<void> measure_smaller();
  Result<void> make(SizeBucket& bucket);
  Result<void> make(ControlPath& path, const Graph& graph);
  Result<Workload> compiled(const Graph& graph) const;
  Result<Workload> compiled(const SizeBucket& bucket) const;
  Result<Profile> profile_path(const Workload& workload);
  Result<Planned> plan(const Workload& workload, const Profile& profile) const;
  Result<void> add(TrainedGraph& made, const Workload& workload, const std::optional<Profile>& profile);
  void begin_adjusting(TrainedGraph& made, const Profile& profile) const;
  const Program& program_of(const SizeBucket& bucket) const;
  void switch_to(std::size_t number);

  BucketRequest request_;
  std::vector<std::int64_t> sizes_;
  std::vector<SizeBucket> buckets_;  // of these sizes
  std::vector<ControlPath> paths_;
  std::size_t current_ = 0, number_ = 0;  // the bucket, and the graph in the trainer
  bool switched_ = false;                 // the graph was changed since the last step that was observed
  Graph network_;                         // the largest bucket's, as it was given
  Machine machine_;
  Bytes peak_;
  std::vector<Bytes> budget_;         // of every graph; empty: everything in memory
  std::unique_ptr<Trainer> trainer_;  // its graph 0 is the largest bucket's
  std::vector<Seconds> switches_;
};

}  // namespace terrace

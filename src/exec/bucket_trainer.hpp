// BucketTrainer: trains a network whose inputs change in size, in one budget, with a graph, a profile and a
// plan for each bucket of sizes (002 section 4.4.5).
//
//   BucketTrainer buckets = BucketTrainer::start(request).value();
//   buckets.use(length).value();  // switches where the length is of another bucket
//   buckets.trainer().step();
//
// The largest bucket is made first: its peak is what a percentage of the budget is of, and its tiers serve
// all. Under a budget every bucket is profiled before these are opened, so that measuring takes no memory
// beside them. A bucket is compiled and planned when the first input of its size comes, and kept from then
// on, its kernels ready. Weights, states and the number of steps go over to the bit. One thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/pipeline.hpp"

namespace terrace {

struct BucketRequest {
  std::vector<std::int64_t> sizes;  ///< ascending
  std::function<Result<Graph>(std::int64_t size)> graph_of;
  unsigned threads = 0;
  std::string machine = "this";
  std::vector<std::string> slow = {};
  std::string fast = {};  ///< as fast_budget.hpp says; empty: everything in memory
  std::string planner = {};
  TrainerOptions options = {};
  Told progress = [](const std::string&) {};
};

struct SizeBucket {
  struct Measured {
    Workload workload;
    Profile profile;
  };
  std::int64_t size = 0;
  std::optional<std::size_t> graph = {};  ///< its number in the trainer; none: no input was of this size yet
  std::uint64_t made_at = 0;              ///< steps that were done when it was first needed and planned
  std::optional<Measured> measured = {};  ///< under a budget, until it is planned
  std::optional<Planned> planned = {};    ///< none: everything in memory, or not made yet
};

class BucketTrainer {
 public:
  /// Fails as `prepare`, `budget_of`, `profile_of`, `plan_of` and `Trainer::start` do for the largest bucket,
  /// and on a machine that is not this computer. pre: there are sizes
  static Result<BucketTrainer> start(BucketRequest request);

  Trainer& trainer() { return *trainer_; }
  /// The bucket of an input of this size is the one that is trained from here on. Fails, and changes nothing,
  /// where it cannot be made; throws as Trainer::use_graph does. pre: the largest bucket holds it
  Result<void> use(std::int64_t size);

  const std::vector<SizeBucket>& buckets() const { return buckets_; }
  const SizeBucket& largest() const { return buckets_.back(); }
  /// The one that is trained.
  const SizeBucket& current() const { return buckets_[current_]; }
  const Machine& machine() const { return machine_; }
  /// What it took, each time, to carry the state from one bucket to another.
  const std::vector<Seconds>& switches() const { return switches_; }

 private:
  explicit BucketTrainer(BucketRequest request);
  Result<void> start_unlimited(const Graph& graph);
  Result<void> start_planned(const Graph& graph);
  Result<void> make(SizeBucket& bucket);
  Result<void> measure_smaller(const Machine& machine);
  Result<Workload> compiled(const SizeBucket& bucket, const Machine& machine) const;
  Result<Planned> plan(const Workload& workload, const Profile& profile) const;

  BucketRequest request_;
  std::vector<std::int64_t> sizes_;
  std::vector<SizeBucket> buckets_;  // of these sizes
  std::size_t current_ = 0;
  Machine machine_;
  std::vector<Bytes> budget_;         // of every bucket; empty: everything in memory
  std::unique_ptr<Trainer> trainer_;  // its graph 0 is the largest bucket's
  std::vector<Seconds> switches_;
};

}  // namespace terrace

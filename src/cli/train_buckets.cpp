// SPDX-License-Identifier: Apache-2.0
// Training on sequences whose length changes: a bucket for each of the few lengths that graphs are made for.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/plan_report.hpp"
#include "cli/train.hpp"
#include "nn/models/sequence.hpp"

namespace terrace::cli {
namespace {

Graph graph_of(const TrainRequest& request, std::int64_t sequence) {
  WorkloadOptions sized = request;
  sized.options.sequence = sequence;
  return sized.training_graph();
}

BucketRequest buckets_of(const TrainRequest& request, const TrainerOptions& options, const Lengths& lengths,
                         ProgressSink progress) {
  BucketRequest asked;
  asked.sizes = choose_buckets(lengths.sample(request.seed), request.buckets);
  asked.graph_of = [&request](std::int64_t size) -> Result<Graph> { return graph_of(request, size); };
  asked.threads = request.threads;
  asked.machine = request.machine;
  asked.slow = request.slow;
  asked.fast = request.fast;
  asked.planner = request.planner;
  if (request.adjust) asked.adjust = adjuster_options(request.planner);
  asked.options = options;
  asked.progress = std::move(progress);
  return asked;
}

void keep(Result<BucketTrainer> started, TrainSetup& setup) {
  setup.buckets = std::make_shared<BucketTrainer>(expect(std::move(started)));
  setup.trainer = std::shared_ptr<Trainer>(setup.buckets, &setup.buckets->trainer());
}

struct BucketSteps {
  const SizeBucket& bucket;
  std::vector<double> seconds;  ///< of each step
};

std::vector<BucketSteps> steps_by_bucket(const TrainRequest& request, const TrainSetup& setup,
                                         const TrainRecord& record) {
  std::vector<BucketSteps> steps;
  std::vector<std::int64_t> sizes;
  for (const SizeBucket& bucket : setup.buckets->buckets()) {
    steps.push_back({bucket, {}});
    sizes.push_back(bucket.size);
  }
  for (std::size_t i = 0; i < record.steps(); ++i) {
    const auto length = setup.lengths->of(static_cast<std::uint64_t>(record.first_step) + i, request.seed);
    steps[bucket_of(sizes, length)].seconds.push_back(record.step_seconds[i]);
  }
  return steps;
}

std::vector<double> switch_seconds(const BucketTrainer& buckets) {
  std::vector<double> seconds;
  for (const Seconds each : buckets.switches()) seconds.push_back(each.count());
  return seconds;
}

nlohmann::json bucket_json(const BucketSteps& steps) {
  const SizeBucket& bucket = steps.bucket;
  const bool done = !steps.seconds.empty();
  return {{"sequence", bucket.size},
          {"steps", steps.seconds.size()},
          {"median_step_seconds", done ? nlohmann::json(median_or_zero(steps.seconds)) : nlohmann::json()},
          {"predicted_step_seconds",
           bucket.planned ? nlohmann::json(bucket.planned->plan->prediction.step.count()) : nlohmann::json()},
          {"split_kernels", bucket.split_kernels},
          {"made_at_step", bucket.number ? nlohmann::json(bucket.made_at) : nlohmann::json()}};
}

}  // namespace

std::optional<Lengths> lengths_of(const TrainRequest& request) {
  if (request.lengths.empty()) {
    if (request.buckets == kMostBuckets) return std::nullopt;
    throw BadInput("--buckets is of no use without --lengths, which they are chosen for");
  }
  if (request.options.sequence)
    throw BadInput("--sequence gives all sequences one length and --lengths many: leave one of them out");
  if (!sequence_axis(request.model)) {
    request.training_graph();
    throw BadInput(fmt::format("{} has no sequences: leave out --lengths", request.model));
  }
  return expect(Lengths::read(request.lengths));
}

Graph largest_graph(const TrainRequest& request, const Lengths& lengths) {
  return graph_of(request, choose_buckets(lengths.sample(request.seed), 1).back());
}

void start_buckets(const TrainRequest& request, const TrainerOptions& options, TrainSetup& setup,
                   ProgressLine& line) {
  keep(BucketTrainer::start(buckets_of(request, options, *setup.lengths, shown_on(line))), setup);
  const SizeBucket& largest = setup.buckets->largest();
  if (!largest.planned) return;
  setup.plan = PlannedRun{setup.buckets->machine(), *largest.planned, setup.buckets->peak(),
                          largest.split_kernels,    nullptr,          nullptr};
}

void start_unlimited_buckets(const BucketTrainer& limited, const TrainerOptions& options, TrainSetup& setup) {
  keep(limited.unlimited(options), setup);
}

void use_bucket(const TrainRequest& request, const TrainSetup& setup, std::int64_t step) {
  if (!setup.buckets) return;
  expect(setup.buckets->use(setup.lengths->of(static_cast<std::uint64_t>(step), request.seed)));
}

nlohmann::json buckets_json(const TrainRequest& request, const TrainSetup& setup, const TrainRecord& record) {
  auto all = nlohmann::json::array();
  for (const BucketSteps& steps : steps_by_bucket(request, setup, record)) all.push_back(bucket_json(steps));
  return {{"buckets", all},
          {"switches", setup.buckets->switches().size()},
          {"median_switch_seconds", median_or_zero(switch_seconds(*setup.buckets))}};
}

void print_buckets(const TrainRequest& request, const TrainSetup& setup, const TrainRecord& record) {
  fmt::print("\n{:>8} {:>6} {:>14} {:>14} {:>16}\n", "sequence", "steps", "median step", "predicted",
             "made at step");
  for (const BucketSteps& steps : steps_by_bucket(request, setup, record)) {
    const SizeBucket& bucket = steps.bucket;
    fmt::print("{:>8} {:>6} {:>14} {:>14} {:>16}\n", bucket.size, steps.seconds.size(),
               steps.seconds.empty() ? "-" : fmt::format("{:.4f} s", median_or_zero(steps.seconds)),
               bucket.planned ? fmt::format("{:.4f} s", bucket.planned->plan->prediction.step.count()) : "-",
               bucket.number ? fmt::format("{}", bucket.made_at) : "-");
  }
  fmt::print("{} switches between buckets, of {:.2f} ms\n\n", setup.buckets->switches().size(),
             1000 * median_or_zero(switch_seconds(*setup.buckets)));
}

}  // namespace terrace::cli

#include "exec/bucket_trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/check.hpp"
#include "data/buckets.hpp"

namespace terrace {
namespace {

/// Smaller buckets may use what the largest leaves free, but no run needs more than the graph's peak.
std::vector<Bytes> opened(const Workload& largest, const Plan& plan, Bytes fast,
                          const std::vector<Bytes>& given) {
  std::vector<Bytes> budget = plan.budget;
  budget[0] = std::max(budget[0], std::min(fast, largest.program.peak));
  // Of slower tiers an eighth more than the largest needs: smaller ones may be packed otherwise.
  for (std::size_t i = 1; i < budget.size(); ++i)
    budget[i] = std::min(given[i], round_up(budget[i] + budget[i] / 8, largest.machine.tiers[i].granularity));
  return budget;
}

Error in_bucket(const SizeBucket& bucket, const Error& error) {
  return {error.code, fmt::format("bucket {}: {}", bucket.size, error.message)};
}

}  // namespace

BucketTrainer::BucketTrainer(BucketRequest request) : request_(std::move(request)), sizes_(request_.sizes) {
  check(!sizes_.empty() && std::is_sorted(sizes_.begin(), sizes_.end()), "the sizes ascend");
  for (const std::int64_t size : sizes_) buckets_.push_back({size});
  if (request_.planner.empty()) request_.planner = planners().front().name;
}

Result<BucketTrainer> BucketTrainer::start(BucketRequest request) {
  BucketTrainer made(std::move(request));
  const auto graph = made.request_.graph_of(made.sizes_.back());
  if (!graph) return graph.error();
  const auto started = made.request_.fast.empty() ? made.start_unlimited(*graph) : made.start_planned(*graph);
  if (!started) return started.error();
  made.current_ = made.buckets_.size() - 1;
  made.buckets_.back().graph = 0;
  return made;
}

Result<void> BucketTrainer::start_unlimited(const Graph& graph) {
  auto program = compile(graph, request_.threads);
  if (!program) return program.error();
  request_.progress(fmt::format("taking {} of memory and setting the weights", readable(program->arena)));
  auto trainer = Trainer::start(*std::move(program), request_.options);
  if (!trainer) return trainer.error();
  trainer_ = std::make_unique<Trainer>(*std::move(trainer));
  return {};
}

Result<void> BucketTrainer::start_planned(const Graph& graph) {
  auto workload = prepare({graph, request_.threads, request_.machine, request_.slow, request_.progress});
  if (!workload) return workload.error();
  if (!workload->here) {
    return Error{ErrorCode::unsupported,
                 fmt::format("machine {} is not this computer, where training happens: run `terrace "
                             "calibrate` here, or leave out --machine",
                             workload->machine.name)};
  }
  auto budget = budget_of(*workload, request_.fast);
  if (!budget) return budget.error();
  budget_ = *std::move(budget);
  const auto profile = profile_of(*workload, budget_, request_.progress);
  if (!profile) return profile.error();
  auto planned = plan(*workload, *profile);
  if (!planned) return planned.error();
  Plan plan = planned->plan.plan();
  budget_ = plan.budget = opened(*workload, plan, planned->fast, budget_);
  planned->plan = verify(workload->graph(), workload->machine, std::move(plan)).value();
  if (const auto measured = measure_smaller(workload->machine); !measured) return measured.error();
  request_.progress("taking memory and setting the weights");
  auto trainer =
      Trainer::start(std::move(workload->program), planned->plan, workload->machine, request_.options);
  if (!trainer) return trainer.error();
  machine_ = std::move(workload->machine);
  trainer_ = std::make_unique<Trainer>(*std::move(trainer));
  buckets_.back().planned = *std::move(planned);
  return {};
}

/// Before the run's own memory is taken: beside it, measuring would need as much again.
Result<void> BucketTrainer::measure_smaller(const Machine& machine) {
  for (SizeBucket& bucket : buckets_) {
    if (&bucket == &buckets_.back()) break;
    request_.progress(fmt::format("making bucket {}", bucket.size));
    auto workload = compiled(bucket, machine);
    if (!workload) return workload.error();
    auto profile = profile_of(*workload, budget_, request_.progress);
    if (!profile) return in_bucket(bucket, profile.error());
    bucket.measured = SizeBucket::Measured{*std::move(workload), *std::move(profile)};
  }
  return {};
}

Result<Workload> BucketTrainer::compiled(const SizeBucket& bucket, const Machine& machine) const {
  const auto graph = request_.graph_of(bucket.size);
  if (!graph) return in_bucket(bucket, graph.error());
  auto program = compile(*graph, request_.threads);
  if (!program) return in_bucket(bucket, program.error());
  const Bytes peak = program->peak;
  return Workload{*std::move(program), machine, true, peak};
}

Result<Planned> BucketTrainer::plan(const Workload& workload, const Profile& profile) const {
  request_.progress(
      fmt::format("planning {} kernels with {}", workload.graph().kernels.size(), request_.planner));
  return plan_of(workload, profile, budget_, request_.planner);
}

Result<void> BucketTrainer::make(SizeBucket& bucket) {
  bucket.made_at = trainer_->steps_done();
  auto workload = bucket.measured ? Result<Workload>(bucket.measured->workload) : compiled(bucket, machine_);
  if (!workload) return workload.error();
  if (bucket.measured) {
    auto planned = plan(*workload, bucket.measured->profile);
    if (!planned) return in_bucket(bucket, planned.error());
    bucket.planned = *std::move(planned);
    bucket.measured.reset();
  }
  const auto added = bucket.planned
                         ? trainer_->add_graph(std::move(workload->program), bucket.planned->plan, machine_)
                         : trainer_->add_graph(std::move(workload->program));
  if (!added) return in_bucket(bucket, added.error());
  bucket.graph = *added;
  return {};
}

Result<void> BucketTrainer::use(std::int64_t size) {
  using Clock = std::chrono::steady_clock;
  const std::size_t wanted = bucket_of(sizes_, size);
  SizeBucket& bucket = buckets_[wanted];
  if (!bucket.graph) {
    if (const auto made = make(bucket); !made) return made;
  }
  const auto start = Clock::now();
  trainer_->use_graph(*bucket.graph);
  if (wanted != current_) switches_.push_back(Clock::now() - start);
  current_ = wanted;
  return {};
}

}  // namespace terrace

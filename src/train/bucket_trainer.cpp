#include "train/bucket_trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.hpp"
#include "data/buckets.hpp"
#include "train/trainer_state.hpp"

namespace terrace {
namespace {

/// Smaller buckets may use what the largest leaves free, but no run needs more than the graph's peak.
std::vector<Bytes> opened(const Workload& largest, const Plan& plan, Bytes fast,
                          const std::vector<Bytes>& given) {
  std::vector<Bytes> budget = plan.budget;
  budget[0] = std::max(budget[0], std::min(fast, largest.peak));
  for (std::size_t i = 1; i < budget.size(); ++i) {
    const MachineTier& tier = largest.machine.tiers[i];
    // Smaller buckets may be packed otherwise, so an eighth more than the largest needs is opened.
    Bytes room = budget[i] + budget[i] / 8;
    // A disk has room for whatever plans and paths are to come, but half of what is free beyond this plan
    // stays free: checkpoints, and state that waits in a file, want some.
    const Bytes everything = largest.peak + tier.granularity * largest.graph().tensors.size();
    if (!tier.addressable && room > Bytes{0} && given[i] > room)
      room = std::max(room, std::min(everything, room + (given[i] - room) / 2));
    budget[i] = std::min(given[i], round_up(room, tier.granularity));
  }
  return budget;
}

Error in_bucket(const SizeBucket& bucket, const Error& error) {
  return {error.code, fmt::format("bucket {}: {}", bucket.size, error.message)};
}

Error in_path(const std::string& name, const Error& error) {
  return {error.code, fmt::format("path {}: {}", name, error.message)};
}

}  // namespace

BucketTrainer::BucketTrainer(BucketRequest request) : request_(std::move(request)), sizes_(request_.sizes) {
  check(!sizes_.empty() && std::is_sorted(sizes_.begin(), sizes_.end()), "the sizes ascend");
  for (const std::int64_t size : sizes_) buckets_.emplace_back().size = size;
  current_ = buckets_.size() - 1;
  if (request_.planner.empty()) request_.planner = planners().front().name;
}

Result<BucketTrainer> BucketTrainer::start(BucketRequest request) {
  BucketTrainer made(std::move(request));
  auto graph = made.request_.graph_of(made.sizes_.back());
  if (!graph) return graph.error();
  made.network_ = *std::move(graph);
  if (!made.request_.fast.empty()) {
    if (const auto started = made.start_planned(); !started) return started.error();
    return made;
  }
  auto program = compile(made.network_, made.request_.threads);
  if (!program) return program.error();
  made.peak_ = program->peak;
  if (const auto started = made.start_unlimited(*std::move(program)); !started) return started.error();
  return made;
}

Result<void> BucketTrainer::start_unlimited(Program program) {
  request_.progress(fmt::format("taking {} of memory and setting the weights", readable(program.arena)));
  auto trainer = Trainer::start(std::move(program), request_.options);
  if (!trainer) return trainer.error();
  trainer_ = std::make_unique<Trainer>(*std::move(trainer));
  buckets_.back().number = 0;
  return {};
}

Result<BucketTrainer> BucketTrainer::unlimited(const TrainerOptions& options) const {
  check(!budget_.empty(), "there is a budget to do without");
  BucketRequest request = request_;
  request.fast.clear();
  request.options = options;
  request.progress = no_progress;
  BucketTrainer made(std::move(request));
  made.network_ = network_;
  made.peak_ = peak_;
  Program largest = program_of(buckets_.back());
  // The arena has room for paths, too, whose kernels are not split here.
  const auto whole = compile(network_, request_.threads);
  if (!whole) return whole.error();
  largest.arena = std::max(largest.arena, whole->arena);
  for (std::size_t i = 0; i + 1 < buckets_.size(); ++i) {
    const Program& program = program_of(buckets_[i]);
    // Where only the largest is split, another may need more at once.
    largest.arena = std::max(largest.arena, program.arena);
    Workload workload{program, machine_, true, program.peak, buckets_[i].split_kernels};
    made.buckets_[i].compiled = SizeBucket::Compiled{std::move(workload), std::nullopt};
  }
  if (const auto started = made.start_unlimited(std::move(largest)); !started) return started.error();
  return made;
}

const Program& BucketTrainer::program_of(const SizeBucket& bucket) const {
  return bucket.number ? trainer_->program(*bucket.number) : bucket.compiled->workload.program;
}

Result<void> BucketTrainer::start_planned() {
  const WorkloadRequest asked{network_, request_.threads, request_.machine, request_.slow, request_.progress};
  auto workload = prepare(asked);
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
  peak_ = workload->peak;
  machine_ = workload->machine;
  workload = fit(asked, *std::move(workload), budget_[0]);
  if (!workload) return workload.error();
  const auto profile = profile_of(*workload, budget_, request_.progress);
  if (!profile) return profile.error();
  auto planned = plan(*workload, *profile);
  if (!planned) return planned.error();
  Plan plan = planned->plan.plan();
  budget_ = plan.budget = opened(*workload, plan, planned->fast, budget_);
  planned->plan = verify(workload->graph(), machine_, std::move(plan)).value();
  if (const auto measured = measure_smaller(); !measured) return measured.error();
  request_.progress("taking memory and setting the weights");
  SizeBucket& largest = buckets_.back();
  largest.split_kernels = workload->split_kernels;
  auto trainer = Trainer::start(std::move(workload->program), planned->plan, machine_, request_.options);
  if (!trainer) return trainer.error();
  trainer_ = std::make_unique<Trainer>(*std::move(trainer));
  largest.planned = *std::move(planned);
  largest.number = 0;
  begin_adjusting(largest, *profile);
  return {};
}

/// Profiles all buckets but the largest, before the run takes its own memory: beside that, measuring would
/// need as much again.
Result<void> BucketTrainer::measure_smaller() {
  for (SizeBucket& bucket : buckets_) {
    if (&bucket == &buckets_.back()) break;
    request_.progress(fmt::format("making bucket {}", bucket.size));
    auto workload = compiled(bucket);
    if (!workload) return workload.error();
    auto profile = profile_of(*workload, budget_, request_.progress);
    if (!profile) return in_bucket(bucket, profile.error());
    bucket.split_kernels = workload->split_kernels;
    bucket.compiled = SizeBucket::Compiled{*std::move(workload), *std::move(profile)};
  }
  return {};
}

Result<Workload> BucketTrainer::compiled(const SizeBucket& bucket) const {
  const auto graph = request_.graph_of(bucket.size);
  if (!graph) return in_bucket(bucket, graph.error());
  auto workload = compiled(*graph);
  if (!workload) return in_bucket(bucket, workload.error());
  return workload;
}

Result<Workload> BucketTrainer::compiled(const Graph& graph) const {
  auto program = compile(graph, request_.threads);
  if (!program) return program.error();
  const Bytes peak = program->peak;
  Workload workload{*std::move(program), machine_, true, peak};
  if (budget_.empty()) return workload;
  const WorkloadRequest asked{graph, request_.threads, request_.machine, request_.slow, request_.progress};
  return fit(asked, std::move(workload), budget_[0]);
}

Result<Planned> BucketTrainer::plan(const Workload& workload, const Profile& profile) const {
  request_.progress(
      fmt::format("planning {} kernels with {}", workload.graph().kernels.size(), request_.planner));
  return plan_of(workload, profile, budget_, request_.planner);
}

Result<void> BucketTrainer::add(TrainedGraph& made, const Workload& workload,
                                const std::optional<Profile>& profile) {
  std::optional<Planned> planned;
  if (profile) {
    auto found = plan(workload, *profile);
    if (!found) return found.error();
    planned = *std::move(found);
  }
  const auto added = planned ? trainer_->add_graph(workload.program, planned->plan, machine_)
                             : trainer_->add_graph(workload.program);
  if (!added) return added.error();
  made.number = *added;
  made.made_at = trainer_->steps_done();
  made.split_kernels = workload.split_kernels;
  made.planned = std::move(planned);
  if (profile) begin_adjusting(made, *profile);
  return {};
}

Result<void> BucketTrainer::make(SizeBucket& bucket) {
  if (!bucket.compiled) {
    auto workload = compiled(bucket);
    if (!workload) return workload.error();
    bucket.compiled = SizeBucket::Compiled{*std::move(workload), std::nullopt};
  }
  const auto added = add(bucket, bucket.compiled->workload, bucket.compiled->profile);
  if (!added) return in_bucket(bucket, added.error());
  bucket.compiled.reset();
  return {};
}

/// Profiles a path that is met in the middle of training, in the memory that the run has.
Result<Profile> BucketTrainer::profile_path(const Workload& workload) {
  const auto folder = cache_folder();
  if (!folder) return folder.error();
  request_.progress(fmt::format("measuring what is new in {} kernels", workload.graph().kernels.size()));
  return trainer_->measure(workload.program, machine_, *folder);
}

Result<void> BucketTrainer::make(ControlPath& path, const Graph& graph) {
  const Graph whole = with_state_of(graph, network_);
  if (const auto fits = require_same_state(network_, whole); !fits) return fits;
  const auto workload = compiled(whole);
  if (!workload) return workload.error();
  std::optional<Profile> profile;
  if (!budget_.empty()) {
    // Measuring may put the state aside in a file, which a path without a plan is not worth.
    if (const auto enough = require_least(*workload, budget_[0]); !enough) return enough;
    auto measured = profile_path(*workload);
    if (!measured) return measured.error();
    profile = *std::move(measured);
  }
  return add(path, *workload, profile);
}

void BucketTrainer::switch_to(std::size_t number) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  trainer_->use_graph(number);
  if (number == number_) return;
  switches_.push_back(Clock::now() - start);
  number_ = number;
  switched_ = true;
}

void BucketTrainer::begin_adjusting(TrainedGraph& made, const Profile& profile) const {
  if (!request_.adjust) return;
  Plan plan = made.planned->plan.plan();
  plan.budget = budget_;  // the next one may need what this one leaves
  made.adjuster =
      std::make_unique<Adjuster>(trainer_->program(*made.number).graph, machine_, profile, std::move(plan),
                                 planner_named(request_.planner), *request_.adjust);
}

TrainedGraph& BucketTrainer::in_training() {
  for (ControlPath& path : paths_) {
    if (path.number == number_) return path;
  }
  return buckets_[current_];
}

std::optional<Adjustment> BucketTrainer::observe() {
  Adjuster* adjuster = in_training().adjuster.get();
  if (std::exchange(switched_, false) || adjuster == nullptr) return std::nullopt;
  return adjuster->observe(trainer_->timeline());
}

Result<void> BucketTrainer::use(std::int64_t size) {
  const std::size_t wanted = bucket_of(sizes_, size);
  SizeBucket& bucket = buckets_[wanted];
  if (!bucket.number) {
    if (const auto made = make(bucket); !made) return made;
  }
  switch_to(*bucket.number);
  current_ = wanted;
  return {};
}

Result<void> BucketTrainer::use_path(const std::string& name, const std::function<Result<Graph>()>& graph) {
  auto path = std::find_if(paths_.begin(), paths_.end(),
                           [&](const ControlPath& known) { return known.name == name; });
  if (path == paths_.end()) {
    const auto given = graph();
    if (!given) return in_path(name, given.error());
    ControlPath made;
    made.name = name;
    if (const auto done = make(made, *given); !done) return in_path(name, done.error());
    path = paths_.insert(paths_.end(), std::move(made));
  }
  switch_to(*path->number);
  return {};
}

}  // namespace terrace

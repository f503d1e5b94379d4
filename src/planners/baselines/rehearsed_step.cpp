// SPDX-License-Identifier: Apache-2.0
#include "planners/baselines/rehearsed_step.hpp"

#include <algorithm>
#include <utility>

#include "graph/layer_steps.hpp"
#include "plan/operand_tiers.hpp"
#include "terrace/recency_policy.hpp"
#include "tiers/described.hpp"

namespace terrace {
namespace {

std::unique_ptr<Tier> tier_without_memory(const MachineTier& tier, Bytes budget) {
  TierDescription description;
  description.name = tier.name;
  description.capacity = Bytes{budget.count / tier.granularity.count * tier.granularity.count};
  description.granularity = tier.granularity;
  description.addressable = tier.addressable;
  description.read_rate = tier.read;
  description.write_rate = tier.write;
  description.latency = tier.latency;
  return std::make_unique<DescribedTier>(std::move(description));
}

}  // namespace

RehearsedStep::RehearsedStep(const PlanRequest& request, const StepUses& uses,
                             const std::vector<TierId>& tiers, std::unique_ptr<Policy> policy,
                             std::string planner)
    : request_(request),
      uses_(uses),
      tiers_(tiers),
      recorder_(request, tiers, std::move(planner)),
      exists_(request.graph.tensors.size()),
      objects_(request.graph.tensors.size()),
      held_(request.graph.tensors.size()) {
  std::vector<std::unique_ptr<Tier>> empty;
  for (const TierId tier : tiers_)
    empty.push_back(tier_without_memory(request.machine[tier], request.budget[tier.index]));
  auto directed = std::make_unique<DirectedPolicy>(std::move(policy));
  policy_ = directed.get();
  MoverOptions rehearsal;
  rehearsal.rehearsal = true;
  manager_ = std::make_unique<Manager>(std::move(empty), std::move(directed), rehearsal);
  manager_->observe(&recorder_);
}

Result<void> RehearsedStep::run(const StartTiers& start, Results results) {
  if (auto made = create_persistent(start); !made) return made;
  if (auto made = create_given(); !made) return made;
  begin();
  if (results == Results::made_beforehand) {
    if (auto made = create_results(); !made) return made;
  }
  for (std::uint32_t kernel = 0; kernel <= uses_.kernels(); ++kernel) {
    if (auto ran = run(kernel); !ran) return ran;
  }
  manager_->step_end();
  return {};
}

Result<void> RehearsedStep::create(TensorId tensor) {
  exists_[tensor.index] = true;
  if (is_empty(tensor)) {
    recorder_.make_empty(tensor);
    return {};
  }
  recorder_.creating(tensor);
  const Result<ObjectId> object = manager_->create(request_.graph[tensor].bytes);
  if (!object) return object.error();
  objects_[tensor.index] = *object;
  return {};
}

/// Creates persistent tensors in the order of their last use, as a previous step would have left them.
Result<void> RehearsedStep::create_persistent(const StartTiers& start) {
  const std::vector<Tensor>& tensors = request_.graph.tensors;
  std::vector<std::uint32_t> last(tensors.size());  // 1 more than the last use, 0: none
  std::vector<bool> rests(tensors.size());
  std::uint32_t time = 0;
  for (std::uint32_t kernel = 0; kernel < uses_.kernels(); ++kernel) {
    for (const Use& use : uses_.of(kernel)) {
      last[use.tensor.index] = ++time;
      rests[use.tensor.index] = rests_after(request_.graph.kernels[kernel], use);
    }
  }
  std::vector<TensorId> kept;
  for (std::uint32_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].persistent) kept.push_back({i});
  }
  std::stable_sort(kept.begin(), kept.end(),
                   [&](TensorId a, TensorId b) { return last[a.index] < last[b.index]; });
  for (const TensorId tensor : kept) {
    policy_->tier_for_new = start[tensor.index];
    auto made = create(tensor);
    policy_->tier_for_new.reset();
    if (!made) return made;
    if (rests[tensor.index] && objects_[tensor.index]) manager_->archive(*objects_[tensor.index]);
  }
  return {};
}

/// Creates the inputs, which are all filled in place before the step begins.
Result<void> RehearsedStep::create_given() {
  std::vector<Wanted> given;
  for (std::uint32_t i = 0; i < request_.graph.tensors.size(); ++i) {
    if (!is_given(request_.graph.tensors[i])) continue;
    if (auto made = create({i}); !made) return made;
    given.push_back({{i}, Access::write});
  }
  const auto filled = hold(given);
  if (!filled) return filled.error();
  return {};
}

void RehearsedStep::begin() {
  drop_secondaries();
  recorder_.begin();
  managed_before_ = managed();
  manager_->step_begin();
}

Result<void> RehearsedStep::create_results() {
  for (const Use& use : uses_.of(uses_.kernels())) {
    if (exists_[use.tensor.index]) continue;
    if (auto made = create(use.tensor); !made) return made;
  }
  return {};
}

/// The kernel after the last one stands for the reader of the results.
Result<void> RehearsedStep::run(std::uint32_t kernel) {
  if (auto announced = announce(kernel); !announced) return announced;
  std::vector<Wanted> operands;
  for (const Use& use : uses_.of(kernel))
    operands.push_back({use.tensor, use.writes ? Access::write : Access::read});
  {
    const auto pins = hold(operands);
    if (!pins) return pins.error();
    if (kernel == uses_.kernels()) return {};
    compute(kernel);
  }
  leave(kernel);
  return {};
}

Result<void> RehearsedStep::announce(std::uint32_t kernel) {
  if (kernel == uses_.kernels()) return {};
  for (const Use& use : uses_.of(kernel)) {
    if (!use.writes && objects_[use.tensor.index]) manager_->will_read(*objects_[use.tensor.index]);
  }
  for (const Use& use : uses_.of(kernel)) {
    if (!use.writes) continue;
    if (!exists_[use.tensor.index]) {
      if (auto made = create(use.tensor); !made) return made;
    }
    if (is_empty(use.tensor)) continue;
    const ObjectId object = *objects_[use.tensor.index];
    if (use.reads) {
      manager_->will_use(object);
    } else {
      manager_->will_write(object);
    }
  }
  return {};
}

void RehearsedStep::compute(std::uint32_t kernel) {
  recorder_.run({kernel}, operand_tiers(request_.graph.kernels[kernel],
                                        [&](TensorId tensor) { return held_[tensor.index]; }));
}

void RehearsedStep::leave(std::uint32_t kernel) {
  const Kernel& what = request_.graph.kernels[kernel];
  for (const Use& use : uses_.of(kernel)) {
    std::optional<ObjectId>& object = objects_[use.tensor.index];
    const bool dead = use.next == kNever && !request_.graph[use.tensor].persistent;
    if (is_empty(use.tensor)) {
      if (dead) recorder_.end_empty(use.tensor);
    } else if (use.tensor == what.workspace) {
      manager_->destroy(*std::exchange(object, std::nullopt));
    } else if (dead) {
      manager_->retire(*std::exchange(object, std::nullopt));
    } else if (rests_after(what, use)) {
      manager_->archive(*object);
    }
  }
  if (ends_layer_step(request_.graph, kernel)) manager_->layer_end();
}

Result<std::vector<Pin>> RehearsedStep::hold(const std::vector<Wanted>& wanted) {
  auto pins = pin_each(wanted);
  if (pins) return pins;
  empty_fast_memory();
  return pin_each(wanted);
}

Result<std::vector<Pin>> RehearsedStep::pin_each(const std::vector<Wanted>& wanted) {
  std::vector<Pin> pins;
  for (const auto& [tensor, access] : wanted) {
    held_[tensor.index] = TierId{0};
    if (is_empty(tensor)) continue;
    auto pin = manager_->pin(*objects_[tensor.index], access);
    if (!pin) return pin.error();
    held_[tensor.index] = tiers_[pin->tier().index];
    pins.push_back(*std::move(pin));
  }
  return pins;
}

void RehearsedStep::order(std::function<void(Regions&)> errand) {
  policy_->errand = std::move(errand);
  manager_->layer_end();
}

void RehearsedStep::empty_fast_memory() {
  order([&](Regions& regions) {
    for (const std::optional<ObjectId>& object : objects_) {
      if (!object || regions.tier(regions.primary(*object)) != TierId{0}) continue;
      for (TierId to{1}; to.index < regions.tiers(); ++to.index) {
        if (evict(regions, *object, to)) break;
      }
    }
  });
}

/// Frees secondary copies: a step begins with one region for each tensor.
void RehearsedStep::drop_secondaries() {
  order([&](Regions& regions) {
    for (const std::optional<ObjectId>& object : objects_) {
      if (!object) continue;
      const RegionId primary = regions.primary(*object);
      for (TierId tier{0}; tier.index < regions.tiers(); ++tier.index) {
        const auto other = regions.linked(primary, tier);
        if (other && *other != primary) regions.free(*other);
      }
    }
  });
}

StartTiers RehearsedStep::left() const {
  StartTiers tiers(objects_.size());
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    if (objects_[i] && request_.graph.tensors[i].persistent) tiers[i] = manager_->where(*objects_[i]);
  }
  return tiers;
}

std::vector<RehearsedStep::Astray> RehearsedStep::astray() const {
  std::vector<Astray> all;
  for (const TensorId tensor : recorder_.astray()) {
    auto next = std::find(tiers_.begin(), tiers_.end(), recorder_.start_tier(tensor)) + 1;
    const bool stays = next == tiers_.end() || !request_.graph[tensor].persistent;
    const TierId slower{static_cast<std::uint32_t>(next - tiers_.begin())};
    all.push_back({tensor, stays ? std::nullopt : std::optional(slower)});
  }
  return all;
}

Bytes RehearsedStep::managed() const {
  Bytes sum;
  for (const auto& from : manager_->statistics().links) {
    for (const LinkStatistics& link : from) sum += link.bytes;
  }
  return sum;
}

Result<Recording> RehearsedStep::finish() && {
  const Bytes moved = managed() - managed_before_;
  if (auto ended = recorder_.end(); !ended) return ended.error();
  Recording recording{{}, moved, recorder_.undefined(), recorder_.brought(), recorder_.cleared()};
  recording.draft = std::move(recorder_).finish();
  return recording;
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "planners/baselines/active_list_step.hpp"

#include <fmt/format.h>

#include <utility>

#include "graph/layer_steps.hpp"
#include "migration/fit.hpp"
#include "migration/residency.hpp"
#include "plan/operand_tiers.hpp"
#include "planners/baselines/active_list.hpp"

namespace terrace {
namespace {

/// How much packing may search: a step is recorded several times until it fits.
constexpr PackingEffort kEffort{2'000'000};

}  // namespace

ActiveListStep::ActiveListStep(const PlanRequest& request, const StepUses& uses, Bytes capacity,
                               const std::vector<bool>& pinned)
    : request_(request),
      uses_(uses),
      capacity_(capacity),
      pinned_(pinned),
      lists_(request.graph.tensors.size()),
      writer_(request, "active-list"),
      state_(request.graph.tensors.size()) {
  const std::vector<bool> fixed = results_that_stay(request.graph);
  for (std::size_t i = 0; i < state_.size(); ++i) state_[i].fixed = fixed[i];
}

Result<std::vector<TensorId>> ActiveListStep::run() {
  if (auto begun = begin(); !begun) return begun.error();
  for (; kernel_ <= uses_.kernels(); ++kernel_) {
    if (auto ran = run(kernel_); !ran) return ran.error();
  }
  return std::move(left_);
}

Result<void> ActiveListStep::begin() {
  for (std::uint32_t i = 0; i < state_.size(); ++i) {
    const Tensor& tensor = request_.graph.tensors[i];
    if (!tensor.persistent && !is_given(tensor)) continue;
    TierId start{0};
    if (tensor.persistent && !pinned_[i]) {
      const auto spill = writer_.spill_tier({i});
      if (!spill) return spill.error();
      start = *spill;
    }
    writer_.start({i}, start);
    state_[i].exists = true;
    state_[i].current = start != TierId{0};
    settle({i}, start);
  }
  return {};
}

Result<void> ActiveListStep::run(std::uint32_t kernel) {
  for (const Use& use : uses_.of(kernel)) state_[use.tensor.index].busy = kernel;
  if (auto room = make_room({}); !room) return room;  // the start may have had too much
  for (const Use& use : uses_.of(kernel)) {
    if (!state_[use.tensor.index].exists) {
      if (auto made = create(use.tensor); !made) return made;
    } else if (!usable(use.tensor)) {
      if (auto brought = bring(use.tensor); !brought) return brought;
    }
  }
  if (kernel == uses_.kernels()) return {};
  compute(kernel);
  if (ends_layer_step(request_.graph, kernel))
    lists_.layer_end([&](TensorId tensor) { return bring(tensor).ok(); });
  return {};
}

void ActiveListStep::compute(std::uint32_t kernel) {
  writer_.run({kernel}, operand_tiers(request_.graph.kernels[kernel],
                                      [&](TensorId tensor) { return state_[tensor.index].where; }));
  for (const Use& use : uses_.of(kernel)) {
    State& state = state_[use.tensor.index];
    if (use.writes) state.current = !is_fast(use.tensor);
    lists_.used(use.tensor);
    if (use.next == kNever && !request_.graph[use.tensor].persistent) end(use.tensor);
  }
}

/// A new tensor is made in its spill tier where fast memory is full and kernels can use that tier in place;
/// otherwise others leave for it.
Result<void> ActiveListStep::create(TensorId tensor) {
  const Bytes size = writer_.size(tensor, {0});
  const auto spill = writer_.spill_tier(tensor);
  const bool in_place = spill.ok() && request_.machine[*spill].addressable;
  TierId where{0};
  if (used_ + size > capacity_ && in_place) {
    where = *spill;
  } else if (auto room = make_room(size); !room) {
    return room;
  }
  writer_.alloc(tensor, where);
  state_[tensor.index].exists = true;
  state_[tensor.index].current = where != TierId{0};
  settle(tensor, where);
  return {};
}

/// Copies a tensor to fast memory unless it is there; others leave for it. Fails where all of them are in
/// use.
Result<void> ActiveListStep::bring(TensorId tensor) {
  if (is_fast(tensor)) return {};
  if (auto room = make_room(writer_.size(tensor, {0})); !room) return room;
  writer_.alloc(tensor, {0});
  writer_.wait(writer_.copy(tensor, state_[tensor.index].where, {0}));
  settle(tensor, {0});
  return {};
}

Result<void> ActiveListStep::evict(TensorId tensor) {
  const auto spill = writer_.spill_tier(tensor);
  if (!spill) return spill.error();
  if (!writer_.has(tensor, *spill)) writer_.alloc(tensor, *spill);
  State& state = state_[tensor.index];
  if (!state.current) writer_.wait(writer_.copy(tensor, {0}, *spill));
  writer_.free(tensor, {0});
  state.current = true;
  used_ -= writer_.size(tensor, {0});
  if (pinned_[tensor.index]) left_.push_back(tensor);
  state.where = *spill;
  lists_.moved(tensor, false);
  return {};
}

Result<void> ActiveListStep::make_room(Bytes size) {
  const auto may_leave = [&](TensorId tensor) {
    const State& state = state_[tensor.index];
    return !state.fixed && state.busy != kernel_ && request_.graph[tensor].bytes.count > 0;
  };
  while (used_ + size > capacity_) {
    const auto victim = lists_.victim(may_leave);
    if (!victim) return full(used_ + size);
    if (auto left = evict(*victim); !left) return left;
  }
  return {};
}

Error ActiveListStep::full(Bytes need) const {
  const bool ended = kernel_ == uses_.kernels();
  return {ErrorCode::too_large,
          fmt::format("{} needs {} of fast memory at once and {} is given",
                      ended ? std::string("the step's end") : request_.graph.kernels[kernel_].name,
                      readable(need), readable(capacity_))};
}

/// Kernels use the tensor in this tier from here on.
void ActiveListStep::settle(TensorId tensor, TierId where) {
  state_[tensor.index].where = where;
  if (where == TierId{0}) used_ += writer_.size(tensor, {0});
  lists_.moved(tensor, where == TierId{0});
}

void ActiveListStep::end(TensorId tensor) {
  if (is_fast(tensor)) used_ -= writer_.size(tensor, {0});
  for (std::uint32_t tier = 0; tier < request_.machine.tiers.size(); ++tier) {
    if (writer_.has(tensor, {tier})) writer_.free(tensor, {tier});
  }
  state_[tensor.index].exists = false;
  lists_.forgotten(tensor);
}

void ActiveListStep::leave_only(TensorId tensor, TierId keep) {
  for (std::uint32_t tier = 0; tier < request_.machine.tiers.size(); ++tier) {
    if (TierId{tier} != keep && writer_.has(tensor, {tier})) writer_.free(tensor, {tier});
  }
}

/// Returns a persistent tensor to where it lies between steps.
void ActiveListStep::return_to_start(TensorId tensor) {
  if (pinned_[tensor.index]) return leave_only(tensor, {0});
  if (!is_fast(tensor)) return;
  const TierId backing_tier = writer_.spill_tier(tensor).value();
  if (!state_[tensor.index].current) writer_.wait(writer_.copy(tensor, {0}, backing_tier));
  leave_only(tensor, backing_tier);
}

Draft ActiveListStep::finish() {
  for (std::uint32_t i = 0; i < state_.size(); ++i) {
    if (!state_[i].exists) continue;
    if (request_.graph.tensors[i].persistent) {
      return_to_start({i});
    } else {
      leave_only({i}, is_given(request_.graph.tensors[i]) ? TierId{0} : state_[i].where);
    }
  }
  for (std::uint32_t i = 0; i < state_.size(); ++i) {
    if (is_given(request_.graph.tensors[i]) && !writer_.has({i}, {0})) writer_.restore({i}, {0});
  }
  return writer_.finish(kEffort);
}

namespace {

/// Pins as many persistent tensors as never have to leave.
Result<Draft> record(const PlanRequest& request, const StepUses& uses, Bytes capacity) {
  constexpr int kPasses = 16;
  std::vector<bool> pinned(request.graph.tensors.size());
  for (std::size_t i = 0; i < pinned.size(); ++i) pinned[i] = request.graph.tensors[i].persistent;
  for (int pass = 0;; ++pass) {
    if (pass == kPasses) {
      pinned = results_that_stay(request.graph);
      for (std::size_t i = 0; i < pinned.size(); ++i)
        pinned[i] = pinned[i] && request.graph.tensors[i].persistent;
    }
    ActiveListStep step(request, uses, capacity, pinned);
    const auto left = step.run();
    if (!left) {
      if (pass >= kPasses) return left.error();
      pass = kPasses - 1;
      continue;
    }
    if (left->empty()) return step.finish();
    for (const TensorId tensor : *left) pinned[tensor.index] = false;
  }
}

}  // namespace

Result<Plan> plan_active_list(const PlanRequest& request) {
  const StepUses uses(request.graph);
  return plan_to_fit(request, uses, "active-list",
                     [&](Bytes capacity) { return record(request, uses, capacity); });
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "planners/baselines/in_place.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "migration/fit.hpp"
#include "migration/in_place.hpp"
#include "plan/operand_tiers.hpp"

namespace terrace {
namespace {

class FirstTouch {
 public:
  FirstTouch(const PlanRequest& request, const StepUses& uses, std::vector<Bytes> room)
      : graph_(request.graph),
        machine_(request.machine),
        uses_(uses),
        room_(std::move(room)),
        tier_(graph_.tensors.size()),
        writer_(request, "first-touch") {}

  Result<Draft> write() {
    if (auto begun = begin(); !begun) return begun.error();
    for (std::uint32_t kernel = 0; kernel < uses_.kernels(); ++kernel) {
      if (auto ran = run(kernel); !ran) return ran.error();
    }
    for (std::uint32_t i = 0; i < tier_.size(); ++i) {
      if (is_given(graph_.tensors[i]) && !writer_.has({i}, tier_[i])) writer_.restore({i}, tier_[i]);
    }
    return writer_.finish({2'000'000});
  }

 private:
  Result<void> begin() {
    for (const bool persistent : {true, false}) {
      for (std::uint32_t i = 0; i < tier_.size(); ++i) {
        const bool now = persistent ? graph_.tensors[i].persistent : is_given(graph_.tensors[i]);
        if (!now) continue;
        if (auto found = find_tier({i}); !found) return found;
        writer_.start({i}, tier_[i]);
      }
    }
    return {};
  }

  Result<void> find_tier(TensorId tensor) {
    Bytes missing{};
    for (std::uint32_t tier = 0; tier < room_.size(); ++tier) {
      if (!machine_.tiers[tier].addressable) continue;
      const Bytes size = writer_.size(tensor, {tier});
      if (size <= room_[tier]) {
        room_[tier] -= size;
        tier_[tensor.index] = {tier};
        return {};
      }
      missing = size - room_[tier];
    }
    return Error{ErrorCode::too_large,
                 fmt::format("the tiers that kernels can use in place are full: {} needs {} more there",
                             graph_[tensor].name, readable(missing))};
  }

  Result<void> run(std::uint32_t kernel) {
    for (const Use& use : uses_.of(kernel)) {
      if (writer_.has(use.tensor, tier_[use.tensor.index])) continue;
      if (auto found = find_tier(use.tensor); !found) return found;
      writer_.alloc(use.tensor, tier_[use.tensor.index]);
    }
    writer_.run({kernel},
                operand_tiers(graph_.kernels[kernel], [&](TensorId tensor) { return tier_[tensor.index]; }));
    for (const Use& use : uses_.of(kernel)) {
      if (use.next != kNever || graph_[use.tensor].persistent) continue;
      const TierId tier = tier_[use.tensor.index];
      writer_.free(use.tensor, tier);
      room_[tier.index] += writer_.size(use.tensor, tier);
    }
    return {};
  }

  const Graph& graph_;
  const Machine& machine_;
  const StepUses& uses_;
  std::vector<Bytes> room_;   ///< bytes left, by tier
  std::vector<TierId> tier_;  ///< by tensor: where it lies for life
  PlanWriter writer_;
};

}  // namespace

Result<Plan> plan_all_slow(const PlanRequest& request) {
  for (auto tier = static_cast<std::uint32_t>(request.machine.tiers.size()); tier-- > 1;) {
    if (!request.machine.tiers[tier].addressable) continue;
    return fitted(request, write_in_place(request, StepUses(request.graph), {tier}, "all-slow"));
  }
  return Error{ErrorCode::unsupported,
               fmt::format("{} has no slower tier that kernels can use in place: take another planner",
                           request.machine.name)};
}

Result<Plan> plan_first_touch(const PlanRequest& request) {
  constexpr int kAttempts = 8;
  const StepUses uses(request.graph);
  std::vector<Bytes> room = request.budget;
  Result<Plan> plan = Error{ErrorCode::too_large, {}};
  // Packed regions may need more than the bytes that are live at once: then less is put in the tier.
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto draft = FirstTouch(request, uses, room).write();
    if (!draft) return draft.error();
    for (std::size_t tier = 0; tier < room.size(); ++tier) {
      if (draft->needed[tier] <= request.budget[tier]) continue;
      room[tier] -= std::min(room[tier], draft->needed[tier] - request.budget[tier]);
    }
    plan = fitted(request, *std::move(draft));
    if (plan) return plan;
  }
  return plan;
}

}  // namespace terrace

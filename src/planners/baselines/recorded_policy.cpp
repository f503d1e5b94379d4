// SPDX-License-Identifier: Apache-2.0
#include "planners/baselines/recorded_policy.hpp"

#include <algorithm>

namespace terrace {
namespace {

constexpr int kSettling = 2, kPasses = 16;

std::vector<TierId> tiers_of_manager(const PlanRequest& request) {
  const Machine& machine = request.machine;
  std::vector<TierId> tiers;
  for (std::uint32_t i = 0; i < machine.tiers.size(); ++i) {
    const bool linked = std::all_of(tiers.begin(), tiers.end(),
                                    [&](TierId other) { return machine.is_linked_both_ways({i}, other); });
    if (linked && request.budget[i] >= machine.tiers[i].granularity) tiers.push_back({i});
  }
  return tiers;
}

/// Gives tensors that went astray slower start tiers. Returns whether each had a slower tier.
bool choose_slower(StartTiers& start, const std::vector<RehearsedStep::Astray>& astray) {
  for (const auto& [tensor, next] : astray) {
    if (!next) return false;
    start[tensor.index] = next;
  }
  return true;
}

class Recorder {
 public:
  Recorder(const PlanRequest& request, const StepUses& uses, std::string_view policy,
           const std::string& planner)
      : request_(request),
        uses_(uses),
        policy_(policy),
        planner_(planner),
        tiers_(tiers_of_manager(request)) {}

  Result<Recording> record() const {
    if (tiers_.empty()) return Error{ErrorCode::too_large, "no tier is given any memory"};
    auto usual = record(Results::made_when_written);
    if (usual && usual->cleared == Bytes{}) return usual;
    auto other = record(Results::made_beforehand);
    return usual && (!other || usual->copied() <= other->copied()) ? std::move(usual) : std::move(other);
  }

 private:
  Result<Recording> record(Results results) const {
    if (auto settled = record_settled(results); settled) return settled;
    // With the slowest tier as every start tier, a step ends as it begins wherever that tier is large enough.
    const TierId slowest{static_cast<std::uint32_t>(tiers_.size()) - 1};
    const StartTiers start(request_.graph.tensors.size(), slowest);
    RehearsedStep step = make_step();
    if (auto ran = step.run(start, results); !ran) return ran.error();
    if (!step.astray().empty()) return astray();
    return std::move(step).finish();
  }

  Result<Recording> record_settled(Results results) const {
    StartTiers start(request_.graph.tensors.size());
    for (int pass = 0; pass < kPasses; ++pass) {
      RehearsedStep step = make_step();
      if (auto ran = step.run(start, results); !ran) return ran.error();
      if (pass < kSettling) {
        start = step.left();
        continue;
      }
      const auto away = step.astray();
      if (away.empty()) return std::move(step).finish();
      if (!choose_slower(start, away)) break;
    }
    return astray();
  }

  RehearsedStep make_step() const {
    return {request_, uses_, tiers_, make_policy(policy_).value(), planner_};
  }
  static Error astray() {
    return {ErrorCode::tier_full, "what outlives a step has no place to return to: give slower tiers more"};
  }

  const PlanRequest& request_;
  const StepUses& uses_;
  const std::string_view policy_;
  const std::string& planner_;
  const std::vector<TierId> tiers_;
};

}  // namespace

Result<Recording> record_policy(const PlanRequest& request, const StepUses& uses, std::string_view policy,
                                const std::string& planner) {
  return Recorder(request, uses, policy, planner).record();
}

}  // namespace terrace

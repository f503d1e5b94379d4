// SPDX-License-Identifier: Apache-2.0
#include "planners/best/best.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "planners/autotm/autotm.hpp"
#include "planners/baselines/prefetch.hpp"
#include "planners/baselines/swapping.hpp"
#include "planners/best/checkpoints.hpp"
#include "planners/best/guided_planning.hpp"
#include "planners/sentinel/sentinel.hpp"
#include "terrace/simulate.hpp"
#include "terrace/verify.hpp"

namespace terrace {
namespace {

/// Shares of fast memory that are kept free for transfers. Which is best depends on how transfers and kernels
/// meet.
constexpr double kReserves[] = {0.02, 0, 0.1};

/// Up to how many kernels these planners are asked: beyond that they take many seconds.
constexpr std::size_t kLargeForCapuchin = 2000, kLargeForAutoTm = 3000;

/// How many iterations AutoTM has: enough for its first placement. The plan is the same on every computer.
const char* const kAutoTmIterations = "300";

/// A plan this close to the time with everything in fast memory is good enough: nothing else is tried.
constexpr double kClose = 1e-3;

/// Where movement alone is so much slower than with recomputation, it is not tried further.
constexpr double kMuchSlower = 1.05;

/// How many plans are tried at most.
constexpr std::uint64_t kMostPriced = 8, kMostRecomputed = 20;

/// How many choices are estimated for each that is tried.
constexpr std::uint64_t kEstimates = 8;

/// How this planner's own plans are made, as the remark of a plan says it.
constexpr std::string_view kPriced = "guided by the bound's multipliers",
                           kRecomputed = "guided by the bound's multipliers, with recomputation";

/// Keeps the plan that is fastest in the simulator.
class Fastest {
 public:
  Fastest(const PlanRequest& request, const KernelClock& clock) : request_(request), clock_(clock) {}

  /// `how` it was made is for the remark. Returns whether it is faster than all before.
  bool offer(Result<Plan> plan, std::string_view how) {
    if (!plan) {
      if (!reason_) reason_ = plan.error();
      return false;
    }
    ++plans_;
    const Seconds step = simulate(request_.graph, request_.machine, clock_, *plan).step;
    if (plan_ && step >= step_) return false;
    // A plan that is wrong must not cost the user one that is right.
    if (const auto wrong = violations(request_.graph, request_.machine, *plan); !wrong.empty()) {
      if (!reason_)
        reason_ = Error{ErrorCode::inconsistent, to_text(wrong[0], request_.graph, request_.machine, *plan)};
      return false;
    }
    step_ = step;
    how_ = how;
    plan_ = *std::move(plan);
    return true;
  }

  /// As long as there is no plan, its step is endless.
  Seconds step() const { return plan_ ? step_ : Seconds::max(); }
  bool is_close_to(Seconds least) const { return plan_ && step_ <= (1 + kClose) * least; }

  Result<Plan> take() {
    if (!plan_) return *reason_;
    plan_->remark = fmt::format("the fastest of {} plans, {}", plans_, how_);
    return *std::move(plan_);
  }

 private:
  const PlanRequest& request_;
  const KernelClock& clock_;
  std::optional<Plan> plan_;
  std::optional<Error> reason_;
  Seconds step_{0};
  std::string_view how_;
  std::uint64_t plans_ = 0;
};

/// Plans a step with some recomputation.
class RecomputePlanning {
 public:
  explicit RecomputePlanning(best::RecomputeRewrite step)
      : step_(std::move(step)),
        request_(step_.request()),
        planning_(request_, best::MultiplierEffort::rough, step_.side_by_side()) {}
  RecomputePlanning(const RecomputePlanning&) = delete;

  Result<Plan> plan(const best::GuidedPlanning::Recipe& recipe) const {
    auto draft = planning_.draft(recipe);
    if (!draft) return draft.error();
    return step_.restore(*std::move(draft));
  }

 private:
  best::RecomputeRewrite step_;
  PlanRequest request_;
  best::GuidedPlanning planning_;
};

/// Looks for the best choice of what is recomputed: one for each size of segments, then around the best.
class RecomputeSearch {
 public:
  RecomputeSearch(const PlanRequest& request, const best::GuidedPlanning& priced, Fastest& fastest)
      : request_(request),
        priced_(priced),
        checkpoints_(request, priced.uses(), priced.problem(), priced.multipliers()),
        fastest_(fastest),
        left_(priced.tries(kMostRecomputed)) {}

  void run() {
    const std::uint64_t after = left_ / 2;
    for (const auto& choice : checkpoints_.choices(kEstimates * left_)) {
      if (left_ > after && !is_late()) offer(choice);
    }
    for (double step = kFirstStep; chosen_ && left_ > 0 && step > kLastStep && !is_late();) {
      const best::Checkpoints::Choice from = choice_;
      if (!offer_more(from, -step) && !offer_more(from, step)) step /= 2;
    }
    const bool is_large = priced_.tries(kMostRecomputed) <= std::size(kReserves);
    for (std::size_t i = 1; chosen_ && !is_large && i < std::size(kReserves); ++i)
      fastest_.offer(chosen_->plan({kReserves[i], best::Order::largest_first, request_.seed}), kRecomputed);
  }

 private:
  /// By how much the share of discarded bytes changes from one try to the next, at first and at last.
  static constexpr double kFirstStep = 1.0 / 16, kLastStep = 1.0 / 200;

  bool is_late() const { return request_.stop.stop_requested(); }

  bool offer_more(best::Checkpoints::Choice choice, double more) {
    choice.amount += more;
    return left_ > 0 && choice.amount > 0 && choice.amount <= 1 && offer(choice);
  }

  /// Returns whether it is faster than all before.
  bool offer(const best::Checkpoints::Choice& choice) {
    std::vector<best::DiscardWindow> discarded = checkpoints_.discarded(choice);
    if (std::find(tried_.begin(), tried_.end(), discarded) != tried_.end()) return false;
    tried_.push_back(discarded);
    best::RecomputeRewrite step(request_, priced_.uses(), std::move(discarded));
    if (step.recomputations() == 0) return false;
    --left_;
    auto planning = std::make_unique<RecomputePlanning>(std::move(step));
    if (!fastest_.offer(planning->plan({kReserves[0], best::Order::largest_first, request_.seed, false}),
                        kRecomputed))
      return false;
    chosen_ = std::move(planning);
    choice_ = choice;
    return true;
  }

  const PlanRequest& request_;
  const best::GuidedPlanning& priced_;
  best::Checkpoints checkpoints_;
  Fastest& fastest_;
  std::uint64_t left_;  ///< tries
  std::vector<std::vector<best::DiscardWindow>> tried_;
  best::Checkpoints::Choice choice_;
  std::unique_ptr<RecomputePlanning> chosen_;
};

/// Offers plans without recomputation, of these recipes.
void offer_priced(const PlanRequest& request, const best::GuidedPlanning& priced, std::uint64_t first,
                  std::uint64_t end, Fastest& fastest) {
  for (std::uint64_t i = first; i < end && !request.stop.stop_requested(); ++i) {
    const best::Order order = i % 2 == 0 ? best::Order::largest_first : best::Order::random;
    fastest.offer(priced.plan({kReserves[i % std::size(kReserves)], order, request.seed + i}), kPriced);
  }
}

}  // namespace

Result<Plan> plan_best(const PlanRequest& request) {
  PlanRequest plain{request.graph, request.machine, request.profile, request.budget, request.seed};
  plain.stop = request.stop;
  const best::GuidedPlanning priced(plain);
  Fastest fastest(request, priced.clock());
  // Each is the fastest of them for some graph, machine and budget.
  fastest.offer(plan_prefetch(plain), "as prefetch makes it");
  fastest.offer(plan_sentinel_plus(plain), "as sentinel+ makes it");
  if (request.graph.kernels.size() <= kLargeForCapuchin)
    fastest.offer(plan_capuchin(plain), "as capuchin makes it");
  if (request.graph.kernels.size() <= kLargeForAutoTm) {
    PlanRequest limited = plain;
    limited.options["iterations"] = kAutoTmIterations;
    fastest.offer(plan_autotm_async(limited), "as autotm-async makes it");
  }
  offer_priced(plain, priced, 0, 1, fastest);
  const Seconds moved = fastest.step();
  if (!fastest.is_close_to(priced.clock().fast_step())) RecomputeSearch(plain, priced, fastest).run();
  if (moved <= kMuchSlower * fastest.step())
    offer_priced(plain, priced, 1, priced.tries(kMostPriced), fastest);
  return fastest.take();
}

}  // namespace terrace

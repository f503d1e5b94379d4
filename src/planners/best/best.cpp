// SPDX-License-Identifier: Apache-2.0
#include "planners/best/best.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "planners/autotm/autotm.hpp"
#include "planners/baselines/prefetch.hpp"
#include "planners/baselines/swapping.hpp"
#include "planners/best/checkpoints.hpp"
#include "planners/best/eviction_walk.hpp"
#include "planners/best/guided_planning.hpp"
#include "planners/sentinel/sentinel.hpp"
#include "terrace/simulate.hpp"
#include "terrace/verify.hpp"

namespace terrace {
namespace {

/// Shares of fast memory that are kept free for transfers. Which is best depends on how transfers and kernels
/// meet.
constexpr double kReserves[] = {0.02, 0, 0.1};

/// Up to how many kernels these planners are asked, and walks are made: beyond that they take many seconds.
constexpr std::size_t kLargeForCapuchin = 2000, kLargeForAutoTm = 3000, kLargeForWalks = 3000;

/// How many iterations AutoTM has: enough for its first placement. The plan is the same on every computer.
const char* const kAutoTmIterations = "300";

/// A plan this close to the time with everything in fast memory is good enough: nothing else is tried.
constexpr double kClose = 1e-3;

/// Where movement alone is so much slower than with recomputation, it is not tried further.
constexpr double kMuchSlower = 1.25;

/// How many plans are tried at most. Where walks find better ones, few are tried by segments.
constexpr std::uint64_t kMostPriced = 8, kMostRecomputed = 20, kFewRecomputed = 4, kMostEvicted = 20;

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

bool moves_anything(const Plan& plan) {
  return std::any_of(plan.instructions.begin(), plan.instructions.end(),
                     [](const Instruction& one) { return std::holds_alternative<Copy>(one); });
}

/// Whether a tensor is in fast memory between two steps and leaves it during one.
bool anything_returns(const Plan& plan, const Graph& graph) {
  std::vector<bool> starts(graph.tensors.size());
  for (const Alloc& region : plan.start) {
    if (region.tier == TierId{0} && graph[region.tensor].persistent) starts[region.tensor.index] = true;
  }
  return std::any_of(plan.instructions.begin(), plan.instructions.end(), [&](const Instruction& one) {
    const auto* free = std::get_if<Free>(&one);
    return free && free->tier == TierId{0} && starts[free->tensor.index];
  });
}

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

/// What is expected of a plan's copies, and where its tensors are between two steps.
struct Way {
  best::Copies copies = best::Copies::waited_for;
  best::Between between = best::Between::as_placed;
};

/// For each expectation of copies the way with tensors as placed comes first, then the one with tensors in
/// slower memory, which need not be tried where the first one's plan lets nothing return. Where kernels can
/// use slower memory, tensors that leave fast memory are in it between steps in any case.
std::vector<Way> ways(const bounds::Problem& problem, std::initializer_list<best::Copies> copies) {
  std::vector<Way> all;
  for (const best::Copies some : copies) {
    all.push_back({some, best::Between::as_placed});
    if (!problem.addressable) all.push_back({some, best::Between::in_slow});
  }
  return all;
}

/// Offers steps with recomputation, and remembers the one with the fastest plan.
class RecomputeTries {
 public:
  /// Every way is tried with every step.
  RecomputeTries(const PlanRequest& request, Fastest& fastest, std::uint64_t most, std::vector<Way> ways)
      : request_(request), fastest_(fastest), left_(most), ways_(std::move(ways)) {}

  std::uint64_t left() const { return left_; }
  bool is_over() const { return left_ == 0 || request_.stop.stop_requested(); }
  bool has_chosen() const { return chosen_ != nullptr; }

  /// Returns whether it is faster than all before.
  bool offer(best::RecomputeRewrite step) {
    if (step.recomputations() == 0) return false;
    --left_;
    auto planning = std::make_unique<RecomputePlanning>(std::move(step));
    bool faster = false;
    bool returns = true;
    for (const Way& way : ways_) {
      if (way.between == best::Between::in_slow && !returns) continue;
      auto plan = planning->plan(recipe(kReserves[0], way));
      const bool moves = !plan || moves_anything(*plan);
      returns = !plan || anything_returns(*plan, request_.graph);
      if (fastest_.offer(std::move(plan), kRecomputed)) {
        faster = true;
        best_way_ = way;
      }
      if (!moves) break;
    }
    if (faster) chosen_ = std::move(planning);
    return faster;
  }

  /// Offers the fastest step with other shares of memory left free.
  void offer_other_reserves() {
    for (std::size_t i = 1; chosen_ && i < std::size(kReserves); ++i) {
      auto more = recipe(kReserves[i], best_way_);
      more.exchanges = true;
      fastest_.offer(chosen_->plan(more), kRecomputed);
    }
  }

 private:
  best::GuidedPlanning::Recipe recipe(double reserve, const Way& way) const {
    return {reserve, best::Order::largest_first, request_.seed, false, way.copies, way.between};
  }

  const PlanRequest& request_;
  Fastest& fastest_;
  std::uint64_t left_;
  std::vector<Way> ways_;
  Way best_way_;  ///< of those, the one of the fastest plan
  std::unique_ptr<RecomputePlanning> chosen_;
};

/// Looks for the best choice of what is recomputed: one for each size of segments, then around the best.
class RecomputeSearch {
 public:
  RecomputeSearch(const PlanRequest& request, const best::GuidedPlanning& priced, Fastest& fastest,
                  std::uint64_t most)
      : request_(request),
        priced_(priced),
        checkpoints_(request, priced.uses(), priced.problem(), priced.multipliers()),
        tries_(request, fastest, priced.tries(most), ways(priced.problem(), {best::Copies::waited_for})) {}

  void run() {
    const std::uint64_t all = tries_.left();
    for (const auto& choice : checkpoints_.choices(kEstimates * all)) {
      if (tries_.left() > all / 2 && !tries_.is_over()) offer(choice);
    }
    for (double step = kFirstStep; tries_.has_chosen() && step > kLastStep && !tries_.is_over();) {
      const best::Checkpoints::Choice from = choice_;
      if (!offer_more(from, -step) && !offer_more(from, step)) step /= 2;
    }
    if (all > std::size(kReserves)) tries_.offer_other_reserves();
  }

 private:
  /// By how much the share of discarded bytes changes from one try to the next, at first and at last.
  static constexpr double kFirstStep = 1.0 / 16, kLastStep = 1.0 / 200;

  bool offer_more(best::Checkpoints::Choice choice, double more) {
    choice.amount += more;
    return tries_.left() > 0 && choice.amount > 0 && choice.amount <= 1 && offer(choice);
  }

  /// Returns whether it is faster than all before.
  bool offer(const best::Checkpoints::Choice& choice) {
    std::vector<best::DiscardWindow> discarded = checkpoints_.discarded(choice);
    if (std::find(tried_.begin(), tried_.end(), discarded) != tried_.end()) return false;
    tried_.push_back(discarded);
    if (!tries_.offer(best::RecomputeRewrite(request_, priced_.uses(), std::move(discarded)))) return false;
    choice_ = choice;
    return true;
  }

  const PlanRequest& request_;
  const best::GuidedPlanning& priced_;
  best::Checkpoints checkpoints_;
  RecomputeTries tries_;
  std::vector<std::vector<best::DiscardWindow>> tried_;
  best::Checkpoints::Choice choice_;
};

/// The same where kernels use fast memory alone: what is evicted on a walk through the step, which depends on
/// how much is left to links.
class EvictionSearch {
 public:
  EvictionSearch(const PlanRequest& request, const best::GuidedPlanning& priced, Fastest& fastest)
      : request_(request),
        priced_(priced),
        walk_(request, priced.uses(), priced.problem()),
        tries_(request, fastest, priced.tries(kMostEvicted),
               ways(priced.problem(), {best::Copies::hidden, best::Copies::waited_for})) {}

  void run() {
    const std::uint64_t all = tries_.left();
    // A little more or less changes what is evicted, and where copies meet kernels, a lot: first all over.
    for (const double hidden : {0.5, 0.0, 0.9}) {
      for (const best::StatesAway states : states_worth_moving()) offer({hidden, 1, states});
    }
    for (const double hidden : {0.25, 0.7, 0.1, 0.4}) offer({hidden, 1, chosen_.states});
    for (const double patience : {2.0, 0.5}) offer({chosen_.hidden, patience, chosen_.states});
    for (double step = kFirstStep; tries_.has_chosen() && step > kLastStep && !tries_.is_over();) {
      const best::EvictionWalk::Options from = chosen_;
      if (!offer_more(from, -step) && !offer_more(from, step)) step /= 2;
    }
    if (all > std::size(kReserves)) tries_.offer_other_reserves();
  }

 private:
  /// By how much the share that links carry changes from one try to the next, at first and at last.
  static constexpr double kFirstStep = 0.08, kLastStep = 0.01;
  /// Of fast memory: what is less matters little, and what is more leaves little beside it.
  static constexpr double kLittle = 0.02, kMuch = 0.4;

  std::vector<best::StatesAway> states_worth_moving() const {
    const double capacity = priced_.problem().capacity;
    const double once = walk_.bytes_away(best::StatesAway::used_once),
                 all = walk_.bytes_away(best::StatesAway::all);
    std::vector<best::StatesAway> states;
    if (all < kMuch * capacity) states.push_back(best::StatesAway::none);
    if (once > kLittle * capacity) states.push_back(best::StatesAway::used_once);
    if (all - once > kMuch * capacity) states.push_back(best::StatesAway::all);
    return states;
  }

  bool offer_more(best::EvictionWalk::Options options, double more) {
    options.hidden += more;
    return options.hidden >= 0 && offer(options);
  }

  /// Returns whether it is faster than all before.
  bool offer(const best::EvictionWalk::Options& options) {
    if (tries_.is_over()) return false;
    std::vector<best::RecomputeBatch> batches = walk_.run(options);
    if (std::find(tried_.begin(), tried_.end(), batches) != tried_.end()) return false;
    tried_.push_back(batches);
    if (!tries_.offer(best::RecomputeRewrite(request_, priced_.uses(), batches))) return false;
    chosen_ = options;
    return true;
  }

  const PlanRequest& request_;
  const best::GuidedPlanning& priced_;
  best::EvictionWalk walk_;
  RecomputeTries tries_;
  std::vector<std::vector<best::RecomputeBatch>> tried_;
  best::EvictionWalk::Options chosen_;
};

/// Offers plans without recomputation, of these recipes.
void offer_priced(const PlanRequest& request, const best::GuidedPlanning& priced, std::uint64_t first,
                  std::uint64_t end, Fastest& fastest) {
  for (std::uint64_t i = first; i < end && !request.stop.stop_requested(); ++i) {
    const best::Order order = i % 2 == 0 ? best::Order::largest_first : best::Order::random;
    for (const Way& way : ways(priced.problem(), {best::Copies::waited_for})) {
      auto plan = priced.plan(
          {kReserves[i % std::size(kReserves)], order, request.seed + i, true, way.copies, way.between});
      const bool returns = !plan || anything_returns(*plan, request.graph);
      fastest.offer(std::move(plan), kPriced);
      if (!returns) break;
    }
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
  const Seconds least = priced.clock().fast_step();
  const bool alone = priced.problem().linked && !priced.problem().addressable &&
                     request.graph.kernels.size() <= kLargeForWalks;
  if (alone && !fastest.is_close_to(least)) EvictionSearch(plain, priced, fastest).run();
  if (!fastest.is_close_to(least))
    RecomputeSearch(plain, priced, fastest, alone ? kFewRecomputed : kMostRecomputed).run();
  if (moved <= kMuchSlower * fastest.step())
    offer_priced(plain, priced, 1, priced.tries(kMostPriced), fastest);
  return fastest.take();
}

}  // namespace terrace

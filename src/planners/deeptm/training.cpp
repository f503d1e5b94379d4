// SPDX-License-Identifier: Apache-2.0
#include "planners/deeptm/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "planners/deeptm/heat_policy.hpp"
#include "terrace/simulate.hpp"

namespace terrace::deeptm {
namespace {

/// How many decisions all episodes together may take, and how many episodes there are at least and at most;
/// 004 Table II has 200, and its Fig. 13 needs more than 300 for some networks.
constexpr std::uint64_t kWork = 2'000'000;
constexpr std::uint32_t kLeastEpisodes = 40, kMostEpisodes = 400;
/// Greedy actions become more frequent over this share of the episodes (150 of 200 in Table II).
constexpr double kRamp = 0.75, kFirstGreedy = 0.1;
/// An agent that was trained before begins with more of them.
constexpr double kContinuedGreedy = 0.6;
/// What is not greedy mostly repeats the best episode so far, so that what is drawn at random is tried beside
/// good decisions: an episode of thousands that are all random tells little about any.
constexpr double kRepeat = 0.8;
/// Training ends after this share of all episodes without a better one, once all actions are greedy.
constexpr double kPatience = 0.15;
/// Then few decisions of the best episode are changed at a time, in so many times the episodes of learning
/// unless that takes more work than learning may. That ends after a share of them without a better one, and
/// where every single change was tried several times.
constexpr std::uint32_t kRefining = 5;
constexpr double kRefiningPatience = 0.25, kRefiningTries = 4;
/// One to this many decisions are changed in an episode on average.
constexpr std::uint64_t kMostChanges = 4;
/// How often heat is tried with less memory until its plan is packed into fast memory.
constexpr int kHeatAttempts = 8;
/// The fixed reward of Table II.
constexpr double kFixedReward = 50;

/// Every kernel with its operands in the slowest tier that kernels can use (004 eq. 9).
Seconds slowest_step(const Environment& environment) {
  const auto& view = environment.view();
  Seconds sum{0};
  for (std::uint32_t k = 0; k < view.kernels(); ++k) {
    Seconds slow{0};
    for (const Use& use : view.uses.of(k)) {
      const auto& unit = environment.units().all[environment.units().of[use.tensor.index]];
      for (const migration::Touch& touch : unit.touches)
        if (touch.kernel == k) slow += touch.slow;
    }
    sum += std::max(slow, view.clock.fast({k}));
  }
  return sum;
}

}  // namespace

Training::Training(const Environment& environment, const TrainingRules& rules)
    : environment_(environment),
      rules_(rules),
      agent_(Rollout::observed(environment.tiers()), environment.tiers(), rules.learning, rules.seed),
      random_(rules.seed + 2),
      best_score_(-std::numeric_limits<double>::infinity()),
      capacity_(environment.request().budget[0]),
      best_capacity_(capacity_),
      slowest_(slowest_step(environment)),
      fastest_(environment.view().clock.fast_step()) {}

void Training::continue_from(const LearnedAgent& agent) {
  if (agent.actions.size() != environment_.decisions().size() || !agent_.set_weights(agent.weights)) return;
  earlier_ = agent.actions;
}

std::uint32_t Training::most_episodes() const {
  if (rules_.episodes > 0) return rules_.episodes;
  const std::uint64_t decisions = std::max<std::size_t>(environment_.decisions().size(), 1);
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(kWork / decisions, kLeastEpisodes, kMostEpisodes));
}

void Training::run() {
  const std::uint32_t most = most_episodes();
  const double ramp = kRamp * most, patience = std::max(1.0, kPatience * most);
  for (int attempt = 0; attempt < kHeatAttempts && !std::isfinite(best_score_); ++attempt)
    run_episode(Policy::heat, 1);
  for (const Policy policy : {Policy::demand, Policy::cost})
    if (!is_stopped()) run_episode(policy, 1);
  if (!earlier_.empty()) run_episode(Policy::repeat, 1);
  const double first = earlier_.empty() ? kFirstGreedy : kContinuedGreedy;
  while (episode_ < most && !is_stopped()) {
    const double greedy = std::min(1.0, first + (1 - first) * episode_ / ramp);
    run_episode(Policy::learned, greedy);
    if (greedy >= 1 && episode_ - found_at_ > patience && episode_ > ramp + patience) break;
    report("learning where tensors go", most);
  }
  refine();
}

/// How many episodes change few decisions of the best.
std::uint32_t Training::most_refining() const {
  if (rules_.refine) return *rules_.refine;
  const std::uint64_t decisions = std::max<std::size_t>(environment_.decisions().size(), 1);
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(std::uint64_t{kRefining} * most_episodes(),
                              std::max<std::uint64_t>(kWork / decisions, kLeastEpisodes)));
}

/// Repeats the best episode with few other decisions, so that what learning left out is found one by one.
void Training::refine() {
  const std::uint32_t first = episode_, most = first + most_refining();
  const double patience = std::min(kRefiningPatience * (most - first),
                                   kRefiningTries * static_cast<double>(environment_.decisions().size()));
  while (episode_ < most && episode_ - std::max(found_at_, first) <= patience && !is_stopped()) {
    changes_ = 1 + random_.below(kMostChanges);
    run_episode(Policy::refine, 0);
    report("changing single decisions", most);
  }
}

void Training::report(std::string_view what, std::uint32_t most) const {
  environment_.request().progress(
      fmt::format("{}, episode {}/{}, best step {:.4f} s", what, episode_, most, best_step_.count()));
}

std::uint32_t Training::choose(const Rollout& rollout, Policy policy, double greedy) {
  if (policy == Policy::heat) return by_heat(rollout).index;
  if (policy == Policy::demand) return by_demand(rollout).index;
  if (policy == Policy::cost) return by_cost(rollout).index;
  if (policy == Policy::repeat) {
    const std::uint8_t known = earlier_[rollout.position()];
    return known == kNotAsked ? by_heat(rollout).index : known;
  }
  if (policy == Policy::refine) return changed(rollout);
  constexpr std::uint64_t kFine = 1 << 20;
  const bool is_greedy = random_.below(kFine) < static_cast<std::uint64_t>(greedy * kFine);
  if (is_greedy) return agent_.best(state_);
  const std::uint8_t known = best_[rollout.position()];
  const bool repeats =
      known != kNotAsked && random_.below(kFine) < static_cast<std::uint64_t>(kRepeat * kFine);
  return repeats ? known : static_cast<std::uint32_t>(random_.below(agent_.actions()));
}

/// What the best episode did, or now and then something else: what the agent thinks best, where that is
/// something else.
std::uint32_t Training::changed(const Rollout& rollout) {
  const std::uint8_t known = best_[rollout.position()];
  const std::uint32_t usual = known == kNotAsked ? by_cost(rollout).index : known;
  if (random_.below(environment_.decisions().size()) >= changes_) return usual;
  const std::uint32_t learned = agent_.best(state_);
  if (learned != usual) return learned;
  return static_cast<std::uint32_t>((usual + 1 + random_.below(agent_.actions() - 1)) % agent_.actions());
}

void Training::run_episode(Policy policy, double greedy) {
  Rollout rollout(environment_, capacity_);
  Actions actions(environment_.decisions().size(), kNotAsked);
  if (!rollout.done()) rollout.observe(state_);
  while (!rollout.done()) {
    const std::size_t position = rollout.position();
    const std::uint32_t action = choose(rollout, policy, greedy);
    const Outcome outcome = rollout.act({action});
    actions[position] = static_cast<std::uint8_t>(outcome.tier.index);
    for (const Outcome::Left& left : outcome.left)
      actions[left.position] = static_cast<std::uint8_t>(left.tier.index);
    double reward = outcome.reward;
    after_.clear();
    if (rollout.done()) {
      reward += judge(rollout, actions);
    } else {
      rollout.observe(after_);
    }
    agent_.remember(state_, action, static_cast<float>(reward), after_);
    std::swap(state_, after_);
  }
  // Nothing was to be decided: the one possible plan is the best.
  if (best_.empty()) judge(rollout, actions);
  ++episode_;
}

/// The episodic reward; a better episode than all before is kept.
double Training::judge(const Rollout& rollout, const Actions& actions) {
  const auto draft = rollout.write(PackingEffort{0});
  const auto& request = environment_.request();
  if (best_.empty()) best_ = actions;
  if (!draft) return -kFixedReward;
  const Bytes budget = request.budget[0], used = capacity_;
  capacity_ = budget;
  if (draft->needed[0] > budget) {
    // Packed, its regions run out of memory: the next episode has less.
    capacity_ = used - std::min(used / 8, draft->needed[0] - budget);
    return -kFixedReward;
  }
  const Seconds step = simulate(request.graph, request.machine, environment_.view().clock, draft->plan).step;
  const double earned = score(step, draft->needed[0]);
  if (earned > best_score_) {
    best_score_ = earned;
    best_step_ = step;
    best_ = actions;
    best_capacity_ = used;
    found_at_ = episode_;
  }
  // Where slow memory costs kernels next to nothing, the scale of eq. 11 is so fine that a slow episode would
  // earn thousands below zero, and the network would learn of nothing else.
  return std::max(earned, -kFixedReward);
}

/// 004 eq. 9-13. With what a plan takes of fast memory as L_D and the rest of the peak in slow memory, eq. 12
/// becomes the share of the peak that is fast, whatever the prices are. Eq. 13 as printed would reward a high
/// price; what is saved of it is rewarded here, on the scale of time.
double Training::score(Seconds step, Bytes fast) const {
  const double span = std::max((slowest_ - fastest_).count(), 1e-3 * fastest_.count());
  const double slow = (step - fastest_).count() / std::max(span, 1e-12);
  const auto peak = static_cast<double>(environment_.view().lifetimes.peak_bytes().count);
  const double price = static_cast<double>(fast.count) / std::max(peak, 1.0);
  return kFixedReward * (rules_.beta * (1 - slow) + (1 - rules_.beta) * (1 - price));
}

Result<Draft> Training::draft(Bytes capacity) const {
  Rollout rollout(environment_, std::min(capacity, best_capacity_));
  while (!rollout.done()) {
    const std::uint8_t known = best_[rollout.position()];
    rollout.act(known == kNotAsked ? by_heat(rollout) : TierId{known});
  }
  return rollout.write(kPlanEffort);
}

}  // namespace terrace::deeptm

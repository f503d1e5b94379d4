// SPDX-License-Identifier: Apache-2.0
#include "train/plan_trial.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "plan/reach.hpp"
#include "planners/sentinel/undecided.hpp"
#include "profile/store.hpp"
#include "profile/tier_sample.hpp"
#include "terrace/error.hpp"

namespace terrace {
namespace {

/// The value of the planner's option `end` that decides by prediction alone.
constexpr const char* kPredicted = "trial";
/// Slower tiers are opened this fraction (one in so many) beyond what the known plans reach there.
constexpr std::uint64_t kSpareParts = 8;

/// Returns whether kernels can use any slower tier, so that they need not wait.
bool can_use_slower_tier(const Machine& machine, const std::vector<Bytes>& budget) {
  for (std::size_t i = 1; i < budget.size(); ++i) {
    if (machine.tiers[i].addressable && budget[i] > Bytes{0}) return true;
  }
  return false;
}

/// Intervals whose kernels wait long enough to be worth a trial, whatever they wait for. The longest waits
/// come first, since what is decided later builds on them.
std::vector<std::uint32_t> late_intervals(const sentinel::Undecided& found, Seconds step,
                                          const PlanTrialOptions& options) {
  std::vector<std::uint32_t> late;
  for (std::uint32_t i = 0; i < found.waited.size(); ++i) {
    if (found.waited[i] > Seconds{0} && found.waited[i] >= options.share * step) late.push_back(i);
  }
  std::stable_sort(late.begin(), late.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return found.waited[a] > found.waited[b]; });
  late.resize(std::min(late.size(), options.intervals));
  return late;
}

bool is_same(const Plan& a, const Plan& b) { return a.start == b.start && a.instructions == b.instructions; }

/// Names everything that gives the numbers of intervals their meaning, so that a decision is found again. The
/// machine's figures are not part of it: when it is calibrated again, real steps on the same tiers are as
/// they were, and if other figures lead to other intervals, that is another question. Neither is the budget
/// of a disk, which is what happens to be free.
std::string question_of(const PlanTrial::Request& request, const sentinel::Undecided& found) {
  std::string text = found.planner;
  for (std::size_t i = 0; i < request.machine.tiers.size(); ++i) {
    const MachineTier& tier = request.machine.tiers[i];
    const auto spec = parse_tier_spec(tier.spec);
    text += " | " + (spec ? rates_key(*spec) : tier.name);
    if (tier.addressable) text += " " + to_string(request.budget[i]);
  }
  return text + " | " + found.intervals;
}

/// Does some work with the store, and answers why it could not be done; nothing where it was.
template <class Work>
std::optional<std::string> in_store(const std::filesystem::path& path, Work work) try {
  auto store = ProfileStore::open(path);
  if (!store) return store.error().message;
  work(*store);
  return std::nullopt;
} catch (const EnvironmentError& error) {
  return error.what();
}

}  // namespace

PlanTrial::PlanTrial(const Request& request, const PlanTrialOptions& options)
    : graph_(request.graph),
      machine_(request.machine),
      profile_(request.profile),
      planner_(request.planner),
      options_(options),
      store_(request.store),
      compute_(request.compute),
      budget_(request.budget),
      as_planned_(request.predicted),
      plan_(as_planned_),
      answer_(kPredicted) {
  if (!can_use_slower_tier(machine_, budget_)) return;
  const auto found = sentinel::find_undecided(planner_, {graph_, machine_, profile_, budget_});
  if (!found) return;
  const auto late = late_intervals(*found, plan_->prediction.step, options_);
  if (late.empty()) return;
  question_ = question_of(request, *found);
  if (!recall()) begin(late, request.steps);
}

Result<Plan> PlanTrial::make(const std::string& end) const {
  return sentinel::plan_with_end(planner_, end, {graph_, machine_, profile_, budget_});
}

/// Returns whether an earlier run decided, and what it decided can be carried out.
bool PlanTrial::recall() {
  if (store_.empty()) return false;
  std::optional<std::string> answer;
  in_store(store_, [&](const ProfileStore& store) {
    answer = store.find_decision(fingerprint(graph_), compute_, question_);
  });
  if (!answer) return false;
  if (*answer != kPredicted) {
    auto plan = make(*answer);
    if (!plan) return false;
    trim_budget(graph_, machine_, *plan);
    auto verified = verify(graph_, machine_, *std::move(plan));
    if (!verified) return false;
    plan_ = *std::move(verified);
  }
  answer_ = *answer;
  remembered_ = true;
  return true;
}

void PlanTrial::begin(const std::vector<std::uint32_t>& late, std::uint64_t steps) {
  trial_ = sentinel::Trial(late, options_.repeats);
  const std::uint32_t needed = trial_.steps_left() + options_.repeats;
  if (needed > steps) {
    note_ = fmt::format(
        "{} late intervals stay as predicted: to try them takes up to {} steps, and training has {}",
        late.size(), needed, steps);
    return;
  }
  auto waiting = make("wait");
  if (!waiting) return;
  open_room({&*waiting, &plan_.plan()});
  predicted_ = candidate(kPredicted, plan_.plan());
  standing_ = candidate("wait", *std::move(waiting));
  find_challenger();
  if (!challenger_) return;
  intervals_ = late.size();
  stage_ = Stage::answers;
  change_to(*standing_);
}

/// Decides how much of each tier is open during the trial: all of the fastest, and of the others what the
/// known plans reach and some more, since plans to come are packed otherwise.
void PlanTrial::open_room(const std::vector<const Plan*>& known) {
  room_ = budget_;
  for (std::size_t i = 1; i < room_.size(); ++i) {
    Bytes reached{0};
    for (const Plan* plan : known) reached = std::max(reached, reach(graph_, machine_, *plan)[i]);
    const Bytes spare = round_up(reached / kSpareParts, machine_.tiers[i].granularity);
    room_[i] = std::min(room_[i], reached + spare);
  }
}

/// The plan as a candidate; none where the open tiers have no room for it.
std::optional<PlanTrial::Candidate> PlanTrial::candidate(const std::string& end, Plan plan) const {
  const std::vector<Bytes> reached = reach(graph_, machine_, plan);
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (reached[i] > room_[i]) return std::nullopt;
  }
  plan.budget = room_;
  return Candidate{end, verify(graph_, machine_, std::move(plan)).value()};
}

/// Looks for the next interval that has a choice, and makes the plan in which its kernels do not wait. There
/// is no challenger where all intervals are decided.
void PlanTrial::find_challenger() {
  challenger_.reset();
  while (!trial_.done()) {
    auto plan = make(trial_.leaving());
    if (plan && !is_same(*plan, standing_->plan.plan()))
      challenger_ = candidate(trial_.leaving(), *std::move(plan));
    if (challenger_) return;
    trial_.skip();
  }
}

std::uint32_t PlanTrial::steps_left() const {
  if (done()) return 0;
  return trial_.steps_left() + options_.repeats - predicted_tried_;
}

void PlanTrial::give_up(const std::string& reason) {
  check(steps_ == 0, "nothing was tried yet");
  stage_ = Stage::done;
  plan_ = as_planned_;
  answer_ = kPredicted;
  note_ = fmt::format("{} late intervals stay as predicted, since there is no room to try them: {}",
                      intervals_, reason);
}

bool PlanTrial::observe(Seconds step) {
  check(!done(), "there is something to try");
  ++steps_;
  return stage_ == Stage::answers ? heed_answer(step) : heed_predicted(step);
}

bool PlanTrial::heed_answer(Seconds step) {
  const std::size_t before = trial_.decided();
  trial_.took(step);
  if (trial_.decided() != before) {
    if (trial_.end() == challenger_->end) standing_ = std::move(challenger_);
    find_challenger();
  }
  if (challenger_) return change_to(trial_.end() == challenger_->end ? *challenger_ : *standing_);
  if (is_same(predicted_->plan.plan(), standing_->plan.plan())) return decide(*standing_);
  stage_ = Stage::predicted;
  return change_to(*predicted_);
}

bool PlanTrial::heed_predicted(Seconds step) {
  predicted_step_ = std::min(predicted_step_, step);
  if (++predicted_tried_ < options_.repeats) return false;
  return decide(predicted_step_ < trial_.best() ? *predicted_ : *standing_);
}

bool PlanTrial::change_to(const Candidate& candidate) {
  if (running_ == candidate.end) return false;
  running_ = candidate.end;
  plan_ = candidate.plan;
  return true;
}

bool PlanTrial::decide(const Candidate& best) {
  const bool changed = change_to(best);
  stage_ = Stage::done;
  answer_ = running_;
  predicted_.reset();
  standing_.reset();
  if (store_.empty()) return changed;
  const auto unkept = in_store(store_, [&](ProfileStore& store) {
    store.save_decision(fingerprint(graph_), compute_, question_, answer_);
  });
  if (unkept) note_ = fmt::format("the next run has to try again: {}", *unkept);
  return changed;
}

Result<Trainer> start_on_trial(PlanTrial& trial, const Program& program, const Machine& machine,
                               const TrainerOptions& options) {
  auto started = Trainer::start(program, trial.plan(), machine, options);
  if (started || trial.done()) return started;
  trial.give_up(started.error().message);
  return Trainer::start(program, trial.plan(), machine, options);
}

}  // namespace terrace

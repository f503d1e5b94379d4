#include "train/plan_trial.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "base/fingerprint.hpp"
#include "migration/variant_choice.hpp"
#include "plan/reach.hpp"
#include "planners/table.hpp"
#include "profile/store.hpp"
#include "profile/tier_sample.hpp"
#include "terrace/error.hpp"

namespace terrace {
namespace {

/// What only predicts, as the planner calls it.
constexpr const char* kPredicted = "trial";
/// Of what known plans reach in slower tiers so large a part is open beyond it.
constexpr std::uint64_t kSpareParts = 8;

bool leaves_it_open(const PlannerChoice& choice) {
  return choice.planner->name == "sentinel" && choice.options.count("end") == 0;
}

/// Whether kernels can use any slower tier.
bool has_choice_of_place(const Machine& machine, const std::vector<Bytes>& budget) {
  for (std::size_t i = 1; i < budget.size(); ++i) {
    if (machine.tiers[i].addressable && budget[i] > Bytes{0}) return true;
  }
  return false;
}

/// Whether for lack of time or of room: kernels that wait could do without. The longest waits first, since
/// what is decided later builds on them.
std::vector<std::uint32_t> late_intervals(const sentinel::Examination& found, Seconds step,
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

/// Whatever gives the numbers of intervals their meaning. Not the machine's figures: when it is calibrated
/// again, real steps on the same tiers are as they were. If other figures lead to other intervals, that is
/// another question. Nor the budget of a disk, which is what happens to be free.
std::string question_of(const PlanTrial::Request& request, const PlannerChoice& choice,
                        const sentinel::Examination& found) {
  std::string text(choice.planner->name);
  for (const auto& [name, value] : choice.options) text += fmt::format("+{}={}", name, value);
  for (std::size_t i = 0; i < request.machine.tiers.size(); ++i) {
    const MachineTier& tier = request.machine.tiers[i];
    const auto spec = parse_tier_spec(tier.spec);
    text += " | " + (spec ? rates_key(*spec) : tier.name);
    if (tier.addressable) text += " " + to_string(request.budget[i]);
  }
  Fingerprint cuts;
  for (const std::uint32_t cut : found.cuts) cuts.add(cut);
  return text + fmt::format(" | {} intervals {}", found.cases.size(), cuts.text());
}

/// Why it could not be done; nothing where it was.
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
  const auto choice = choose_planner(planner_);
  if (!choice || !leaves_it_open(*choice) || !has_choice_of_place(machine_, budget_)) return;
  // Of kernels as they are planned, so that intervals have the numbers they have in plans.
  const PlanRequest asked{graph_, machine_, profile_, budget_, 0, choice->options};
  const VariantChoice variants(asked);
  PlanRequest waiting = variants.request();
  waiting.options["end"] = "wait";
  const auto found = sentinel::examine(waiting);
  if (!found) return;
  const auto late = late_intervals(*found, plan_->prediction.step, options_);
  if (late.empty()) return;
  question_ = question_of(request, *choice, *found);
  if (!recall()) begin(late, request.steps);
}

Result<Plan> PlanTrial::make(const std::string& end) const {
  return make_plan(planner_ + "+end=" + end, {graph_, machine_, profile_, budget_});
}

/// Whether an earlier run decided, and what it decided can be carried out.
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

/// All of the fastest tier; of the others what these plans reach, and some more for those to come, which are
/// packed otherwise.
void PlanTrial::open_room(const std::vector<const Plan*>& known) {
  room_ = budget_;
  for (std::size_t i = 1; i < room_.size(); ++i) {
    Bytes reached{0};
    for (const Plan* plan : known) reached = std::max(reached, reach(graph_, machine_, *plan)[i]);
    const Bytes spare = round_up(reached / kSpareParts, machine_.tiers[i].granularity);
    room_[i] = std::min(room_[i], reached + spare);
  }
}

/// None where there is no room for the plan.
std::optional<PlanTrial::Candidate> PlanTrial::candidate(const std::string& end, Plan plan) const {
  const std::vector<Bytes> reached = reach(graph_, machine_, plan);
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (reached[i] > room_[i]) return std::nullopt;
  }
  plan.budget = room_;
  return Candidate{end, verify(graph_, machine_, std::move(plan)).value()};
}

/// The plan of the next interval that has a choice, left; none where all are decided.
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

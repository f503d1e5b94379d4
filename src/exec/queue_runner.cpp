// SPDX-License-Identifier: Apache-2.0
#include "exec/queue_runner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <utility>

#include "base/check.hpp"
#include "terrace/error.hpp"

namespace terrace {
namespace {

using SteadyClock = std::chrono::steady_clock;

Device& device_of(const OpenTiers& tiers) {
  Device* const device = tiers.device();
  check(device != nullptr, "a plan for queues has a tier on a device");
  return *device;
}

void issue_copies(DeviceQueue& queue, const QueueCopies& copies) {
  for (const auto& [from, to, bytes] : copies.copies) issue_copy(queue, copies.direction, {from, to, bytes});
}

}  // namespace

QueueRunner::QueueRunner(Parts parts, QueueMarks marks)
    : parts_(std::move(parts)),
      marks_(marks),
      script_(resolve_for_queues(parts_.graph, parts_.machine, parts_.plan.plan(), parts_.tiers)),
      device_(device_of(parts_.tiers)),
      bundle_of_(script_.actions.size()) {
  for (const QueueAction& action : script_.actions) {
    const bool needed = action.is_waited_for && script_.lanes[action.lane].on_device;
    events_.push_back(needed ? device_.make_event() : nullptr);
    const auto* const launch = std::get_if<QueueLaunch>(&action.what);
    launches_.push_back(launch != nullptr ? queued(*launch) : nullptr);
  }
  for (const QueueLane& planned : script_.lanes) {
    Lane& lane = lanes_.emplace_back();
    if (planned.on_device) {
      lane.queue = device_.make_queue();
      lane.mark = device_.make_flag();
    } else {
      lane.porter = std::make_unique<QueuePorter>(device_.make_flag());
    }
  }
}

QueuedKernel* QueueRunner::queued(const QueueLaunch& launch) const {
  check(launch.engine < parts_.kernels.size(), "there are kernels for each engine");
  RunnableKernel* const kernel = (*parts_.kernels[launch.engine])[launch.kernel][launch.variant].get();
  auto* const found = dynamic_cast<QueuedKernel*>(kernel);
  check(found != nullptr, "an engine on a device has kernels for queues");
  return found;
}

void QueueRunner::step(const StepContext& context) {
  const auto begin = SteadyClock::now();
  context_ = context;
  failed_ = false;
  failure_.reset();
  for (Lane& lane : lanes_) {
    lane.issued = 0;
    if (lane.porter) lane.before = lane.porter->handed_over();
  }
  for (std::uint32_t number = 0; number < script_.actions.size() && !failed_; ++number) {
    try {
      issue(number);
    } catch (...) {
      note_failure(text(script_.actions[number]));
    }
  }
  times_.issue = SteadyClock::now() - begin;
  finish_all();
  times_.step = SteadyClock::now() - begin;
  for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i].before += script_.lanes[i].actions;
  if (failed_) raise_failure();
}

void QueueRunner::issue(std::uint32_t number) {
  const QueueAction& action = script_.actions[number];
  Lane& lane = lanes_[action.lane];
  if (lane.porter) {
    lane.porter->hand_over([this, number] { carry_out(number); });
    lane.issued = action.position;
    return;
  }
  for (const std::uint32_t wait : action.waits) make_wait(*lane.queue, wait);
  lane.issued = action.position;
  if (const Bundle* const bundle = bundle_of_[number]) {
    if (bundle->launches.front() == number) lane.queue->issue(*bundle->kernels);
  } else if (launches_[number] != nullptr) {
    launch(number, context_);
  } else {
    issue_copies(*lane.queue, std::get<QueueCopies>(action.what));
  }
  if (events_[number]) lane.queue->record(*events_[number]);
  if (lane.mark && is_marked(action)) lane.queue->raise(*lane.mark, count_after(number));
}

void QueueRunner::launch(std::uint32_t number, const StepContext& context) {
  const QueueAction& action = script_.actions[number];
  launches_[number]->enqueue(std::get<QueueLaunch>(action.what).operands, context,
                             *lanes_[action.lane].queue);
}

void QueueRunner::bundle(const std::function<bool(std::uint32_t kernel)>& repeats,
                         const StepContext& context) {
  unbundle();
  std::vector<Bundle> bundles = runs_of_launches(repeats);
  for (Bundle& bundle : bundles) fill(bundle, context);
  bundles_ = std::move(bundles);
  for (const Bundle& bundle : bundles_) {
    for (const std::uint32_t number : bundle.launches) bundle_of_[number] = &bundle;
  }
}

void QueueRunner::unbundle() {
  bundle_of_.assign(script_.actions.size(), nullptr);
  bundles_.clear();
}

std::vector<QueueRunner::Bundle> QueueRunner::runs_of_launches(
    const std::function<bool(std::uint32_t)>& repeats) const {
  std::vector<Bundle> bundles;
  std::vector<Bundle*> open(lanes_.size());  // by lane: the one that its next launch may join
  bundles.reserve(script_.actions.size());
  for (std::uint32_t number = 0; number < script_.actions.size(); ++number) {
    const QueueAction& action = script_.actions[number];
    Bundle*& last = open[action.lane];
    const bool joins = launches_[number] != nullptr && repeats(std::get<QueueLaunch>(action.what).kernel);
    if (!joins || !action.waits.empty()) last = nullptr;
    if (!joins) continue;
    if (last == nullptr) last = &bundles.emplace_back();
    last->launches.push_back(number);
    if (is_marked(action)) last = nullptr;
  }
  return bundles;
}

void QueueRunner::fill(Bundle& bundle, const StepContext& context) {
  DeviceQueue& queue = *lanes_[script_.actions[bundle.launches.front()].lane].queue;
  queue.begin_bundle();
  try {
    for (const std::uint32_t number : bundle.launches) launch(number, context);
  } catch (...) {
    const std::exception_ptr first = std::current_exception();
    try {
      queue.end_bundle();
    } catch (...) {  // a consequence of the first failure
    }
    std::rethrow_exception(first);
  }
  bundle.kernels = queue.end_bundle();
}

void QueueRunner::make_wait(DeviceQueue& queue, std::uint32_t action) {
  Lane& other = lane_of(action);
  if (other.queue) {
    queue.wait_for(*events_[action]);
  } else if (other.porter->flag() != nullptr) {
    queue.wait_for(*other.porter->flag(), count_after(action));
  } else {
    other.porter->wait_for(count_after(action));
  }
}

// On a porter's thread. What comes behind a failure is left out: its operands may be rubbish.
void QueueRunner::carry_out(std::uint32_t number) noexcept {
  const QueueAction& action = script_.actions[number];
  try {
    for (const std::uint32_t wait : action.waits) wait_on_host(wait);
    if (failed_) return;
    if (const auto* moves = std::get_if<QueueMoves>(&action.what)) {
      parts_.tiers.mover().move(moves->moves);
    } else {
      const auto& run = std::get<QueueHostRun>(action.what);
      (*parts_.kernels[run.engine])[run.kernel][run.variant]->run(run.operands, context_);
    }
  } catch (...) {
    note_failure(text(action));
  }
}

void QueueRunner::wait_on_host(std::uint32_t action) {
  Lane& other = lane_of(action);
  if (other.queue) {
    events_[action]->wait();
  } else {
    other.porter->wait_for(count_after(action));
  }
}

std::uint32_t QueueRunner::count_after(std::uint32_t action) const {
  const QueueAction& one = script_.actions[action];
  return lanes_[one.lane].before + one.position;
}

bool QueueRunner::is_marked(const QueueAction& action) const {
  return action.is_waited_for || marks_ == QueueMarks::everywhere;
}

// Queues wait for porters and porters for queues: all of what was issued ends, whatever failed, because a
// porter's job is over even then.
void QueueRunner::finish_all() noexcept {
  bool lost = false;
  for (Lane& lane : lanes_) {
    if (lane.queue && !finish(*lane.queue)) lost = true;
  }
  for (Lane& lane : lanes_) {
    if (lane.porter) lane.porter->wait_for(lane.porter->handed_over());
  }
  if (!lost) return;
  // A lost device fails every call: what failed is what had not ended.
  const std::lock_guard lock(failure_mutex_);
  if (std::string under_way = what_is_under_way(); !under_way.empty()) where_ = std::move(under_way);
}

// Tried twice: a call may be refused by a device that works on, and then what was issued is still under way.
bool QueueRunner::finish(DeviceQueue& queue) noexcept {
  for (int i = 0; i < 2; ++i) {
    try {
      queue.finish();
      return true;
    } catch (...) {
      note_failure("the end of the step");
    }
  }
  return false;
}

void QueueRunner::note_failure(const std::string& where) noexcept {
  const std::lock_guard lock(failure_mutex_);
  failed_ = true;
  if (failure_) return;
  failure_ = Failure::current();
  where_ = where;
}

void QueueRunner::raise_failure() const {
  try {
    failure_->raise();
  } catch (const EnvironmentError& error) {
    throw EnvironmentError(
        fmt::format("the step on {} ended at {}: {}", device_.name(), where_, error.what()), error.place());
  }
}

std::string QueueRunner::text(const QueueAction& action) const {
  return fmt::format("instruction {} ({})", action.instruction,
                     to_text(parts_.plan->instructions[action.instruction], parts_.graph, parts_.machine));
}

bool QueueRunner::is_known_over(std::uint32_t action) const {
  const Lane& lane = lanes_[script_.actions[action].lane];
  // Porters have ended all of theirs.
  return lane.porter || (lane.mark && lane.mark->value() >= count_after(action));
}

// Of every queue, from the first action that is not known to be over to the next one that would have been.
std::string QueueRunner::what_is_under_way() const {
  std::vector<std::string> found;
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    const QueueAction *first = nullptr, *last = nullptr;
    for (std::uint32_t number = 0; number < script_.actions.size(); ++number) {
      const QueueAction& action = script_.actions[number];
      if (action.lane != lane || !lanes_[lane].queue || action.position > lanes_[lane].issued) continue;
      if (is_known_over(number)) {
        first = last = nullptr;
        continue;
      }
      if (last != nullptr && is_marked(*last)) break;
      bool started = true;
      for (const std::uint32_t wait : action.waits) started = started && is_known_over(wait);
      if (!started) break;
      if (first == nullptr) first = &action;
      last = &action;
    }
    if (first == nullptr) continue;
    found.push_back(first == last ? text(*first) : fmt::format("one of {} to {}", text(*first), text(*last)));
  }
  return fmt::format("{}", fmt::join(found, " or "));
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "exec/runner.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/check.hpp"
#include "exec/access_count.hpp"

namespace terrace {

Runner::Runner(Script script, std::size_t instructions, const OpenTiers& tiers, const Kernels& kernels,
               LaneOptions options)
    : script_(std::move(script)),
      tiers_(tiers),
      kernels_(kernels),
      transfers_(script_.slots),
      options_(std::move(options)) {
  timeline_.instructions.resize(instructions);
  timeline_.moved = script_.moved;
  timeline_.peak = script_.peak;
  runs_.reserve(script_.actions.size());
  if (!script_.lanes.empty()) begin_lanes();
}

template <class Perform>
void Runner::carry_out(Perform perform_one) {
  begin_ = Clock::now();
  clock_ = Seconds{0};
  try {
    for (const Action& action : script_.actions) {
      std::visit([&](const auto& what) { perform_one(action, what); }, action.what);
    }
  } catch (...) {
    let_go();
    throw;
  }
  finish_timeline();
}

/// Letting go of a transfer waits for its end: nothing writes into the tiers any more.
void Runner::let_go() {
  for (Transfer& transfer : transfers_) transfer = {};
}

void Runner::step(const StepContext& context, StepGate* gate) {
  if (team_) return lane_step(context, gate);
  carry_out([&](const Action& action, const auto& what) {
    if (gate != nullptr) {
      gate->wait_before(action.instruction);
      clock_ = now();  // waiting at the gate counts for no instruction
    }
    perform(action, what, context);
  });
}

void Runner::counted_step(const StepContext& context, AccessCount& count) {
  carry_out([&](const Action& action, const auto& what) {
    using What = std::decay_t<decltype(what)>;
    if constexpr (std::is_same_v<What, RunAction>) count.before(what);
    perform(action, what, context);
    if constexpr (std::is_same_v<What, RunAction>) count.after(what);
    if constexpr (std::is_same_v<What, CopyAction>) transfers_[what.slot].wait();
  });
}

void Runner::perform(const Action& action, const RunAction& run, const StepContext& context) {
  compute(action, run, context, clock_);
  clock_ = timeline_.instructions[action.instruction].end;
}

void Runner::compute(const Action& action, const RunAction& run, const StepContext& context, Seconds begin) {
  kernels_[run.kernel][run.variant]->run(run.operands, context);
  for (const Charge& charge : run.charges) charge.tier->charge(charge.read, charge.written, now() - begin);
  timeline_.instructions[action.instruction] = {begin, now()};
}

void Runner::perform(const Action& action, const CopyAction& copy, const StepContext&) {
  start(action, copy, clock_);
  clock_ = now();
}

void Runner::start(const Action& action, const CopyAction& copy, Seconds begin) {
  timeline_.instructions[action.instruction] = {begin, begin};
  // Tokens have no bytes: where nothing else moves there may be no second tier, and so no mover.
  if (!copy.moves.empty()) transfers_[copy.slot] = tiers_.mover().start(copy.moves);
}

void Runner::perform(const Action& action, const WaitAction& wait, const StepContext&) {
  const Seconds begin = clock_;
  for (const WaitAction& earlier : wait.earlier) finish(earlier);
  finish(wait);
  clock_ = now();
  timeline_.instructions[action.instruction] = {begin, clock_};
}

/// A run has ended before the next instruction is issued, and an earlier wait may have implied this one.
void Runner::finish(const WaitAction& wait) {
  if (wait.slot == WaitAction::kNothing || !transfers_[wait.slot].valid()) return;
  Transfer transfer = std::exchange(transfers_[wait.slot], {});
  transfer.wait();
  timeline_.instructions[wait.copy].end = transfer.ended() - begin_;
}

/// For how long at least one kernel ran.
Seconds Runner::time_computing() {
  runs_.clear();
  for (const Action& action : script_.actions) {
    if (std::holds_alternative<RunAction>(action.what))
      runs_.push_back(timeline_.instructions[action.instruction]);
  }
  std::sort(runs_.begin(), runs_.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  Seconds sum{0}, end{0};
  for (const Interval& run : runs_) {
    sum += std::max(Seconds{0}, run.end - std::max(run.begin, end));
    end = std::max(end, run.end);
  }
  return sum;
}

void Runner::finish_timeline() {
  timeline_.step = clock_;
  Seconds passed{0};
  std::uint32_t next = 0;
  const auto pass_until = [&](std::uint32_t instruction) {
    for (; next < instruction; ++next) timeline_.instructions[next] = {passed, passed};
  };
  for (const Action& action : script_.actions) {
    pass_until(action.instruction);
    const Interval& interval = timeline_.instructions[next++];
    if (action.beside) continue;  // the next was issued at once
    passed = std::holds_alternative<CopyAction>(action.what) ? interval.begin : interval.end;
  }
  pass_until(static_cast<std::uint32_t>(timeline_.instructions.size()));
  timeline_.exposed = timeline_.step - time_computing();
}

void Runner::add_times(std::span<Seconds> times) const {
  check(times.size() == kernels_.size(), "there is one time for each kernel");
  for (const Action& action : script_.actions) {
    if (const auto* run = std::get_if<RunAction>(&action.what))
      times[run->kernel] += timeline_.instructions[action.instruction].length();
  }
}

}  // namespace terrace

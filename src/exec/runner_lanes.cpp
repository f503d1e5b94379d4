// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "exec/runner.hpp"

namespace terrace {

void Runner::begin_lanes() {
  arrived_ = std::make_unique<std::atomic<std::uint32_t>[]>(script_.lanes.size());
  std::vector<LaneTeam::Lane> lanes(script_.lanes.size());
  for (std::uint32_t i = 0; i < lanes.size(); ++i) {
    const ScriptLane& lane = script_.lanes[i];
    if (lane.engine && options_.enter)
      lanes[i].enter = [this, engine = *lane.engine] { options_.enter(engine); };
    if (i == 0) {
      lanes[i].work = [this] { issue_all(); };
    } else if (lane.engine || lane.holds) {
      lanes[i].work = [this, i] { work_on(i); };
    }
  }
  team_ = std::make_unique<LaneTeam>(std::move(lanes));
}

void Runner::lane_step(const StepContext& context, StepGate* gate) {
  begin_ = Clock::now();
  context_ = &context;
  gate_ = gate;
  for (std::size_t i = 0; i < script_.lanes.size(); ++i) arrived_[i] = 0;
  try {
    team_->step();
  } catch (...) {
    let_go();
    throw;
  }
  clock_ = now();
  note_ends();
  finish_timeline();
}

/// Every transfer has ended, for every ticket is complete at the end of a step.
void Runner::note_ends() {
  for (const Action& action : script_.actions) {
    const auto* copy = std::get_if<CopyAction>(&action.what);
    if (copy == nullptr || !transfers_[copy->slot].valid()) continue;
    timeline_.instructions[action.instruction].end = transfers_[copy->slot].ended() - begin_;
    transfers_[copy->slot] = {};
  }
}

void Runner::issue_all() {
  for (const Action& action : script_.actions) {
    if (gate_ != nullptr) gate_->wait_before(action.instruction);
    std::visit([&](const auto& what) { issue(action, what); }, action.what);
  }
}

void Runner::issue(const Action& action, const RunAction&) {
  const auto [lane, number] = action.place;
  if (lane == 0) return perform_on_lane(action);
  team_->issue(lane);
  if (!action.beside) team_->wait_for(lane, number);
}

void Runner::issue(const Action& action, const CopyAction&) {
  const std::uint32_t lane = action.place.lane;
  if (script_.lanes[lane].holds) return team_->issue(lane);
  perform_on_lane(action);
  team_->complete(lane);
}

void Runner::issue(const Action& action, const WaitAction&) {
  const Seconds begin = now();
  wait_for(action.place);
  timeline_.instructions[action.instruction] = {begin, now()};
}

void Runner::work_on(std::uint32_t lane) {
  std::uint32_t number = 0;
  for (const std::uint32_t action : script_.lanes[lane].actions) {
    team_->wait_for_issue(lane, ++number);
    perform_on_lane(script_.actions[action]);
    team_->complete(lane);
  }
}

void Runner::perform_on_lane(const Action& action) {
  for (const LaneCount& count : action.after) wait_for(count);
  if (options_.before_each) options_.before_each(action.instruction);
  if (const auto* run = std::get_if<RunAction>(&action.what)) {
    compute(action, *run, *context_, now());
  } else {
    start(action, std::get<CopyAction>(action.what), now());
  }
}

/// A link's transfers count as complete when they have been started: the mover says when they have ended. All
/// before a transfer have ended with it.
void Runner::wait_for(LaneCount count) {
  team_->wait_for(count.lane, count.number);
  const ScriptLane& lane = script_.lanes[count.lane];
  if (!lane.is_link) return;
  std::atomic<std::uint32_t>& arrived = arrived_[count.lane];
  for (std::uint32_t i = arrived; i < count.number; ++i)
    transfers_[std::get<CopyAction>(script_.actions[lane.actions[i]].what).slot].wait();
  std::uint32_t seen = arrived;
  while (seen < count.number && !arrived.compare_exchange_weak(seen, count.number)) {
  }
}

}  // namespace terrace

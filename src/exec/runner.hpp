// SPDX-License-Identifier: Apache-2.0
// Runner: carries out a script, step after step, and notes when everything happened.
//
// A script of one lane is carried out by whoever asks for a step. One of several lanes has a thread for each
// engine, which computes with a team of its own, and for each link whose transfers start after something; one
// of them issues the actions. Allocates nothing in a step but what the mover notes about a transfer. One
// thread at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backends/backend.hpp"
#include "exec/lane_team.hpp"
#include "exec/script.hpp"
#include "exec/step_gate.hpp"
#include "terrace/simulate.hpp"

namespace terrace {

class AccessCount;

struct LaneOptions {
  /// Called by the thread of an engine before its first kernel.
  std::function<void(EngineId)> enter = {};
  /// For tests: called by whoever carries out an instruction on its lane, before it does.
  std::function<void(std::uint32_t instruction)> before_each = {};
};

class Runner {
 public:
  /// `instructions`: how many the plan has. Tiers and kernels outlive the runner.
  Runner(Script script, std::size_t instructions, const OpenTiers& tiers, const Kernels& kernels,
         LaneOptions options = {});

  /// What fails ends the step: everything that was started has ended, too, when the exception leaves.
  /// The step passes the gate, where there is one, before each instruction.
  void step(const StepContext& context, StepGate* gate = nullptr);
  /// The same, and accesses are counted. Every transfer is waited for where it is started: nothing but
  /// kernels uses memory while they run.
  void counted_step(const StepContext& context, AccessCount& count);
  const Timeline& timeline() const { return timeline_; }
  /// Adds what the kernels took in the last step, by kernel.
  void add_times(std::span<Seconds> times) const;

 private:
  using Clock = std::chrono::steady_clock;

  template <class Perform>
  void carry_out(Perform perform_one);
  void perform(const Action& action, const RunAction& run, const StepContext& context);
  void perform(const Action& action, const CopyAction& copy, const StepContext& context);
  void perform(const Action& action, const WaitAction& wait, const StepContext& context);
  void finish(const WaitAction& wait);
  void compute(const Action& action, const RunAction& run, const StepContext& context, Seconds begin);
  void start(const Action& action, const CopyAction& copy, Seconds begin);
  void let_go();

  // runner_lanes.cpp: scripts of several lanes.
  void begin_lanes();
  void lane_step(const StepContext& context, StepGate* gate);
  void issue_all();
  void issue(const Action& action, const RunAction& run);
  void issue(const Action& action, const CopyAction& copy);
  void issue(const Action& action, const WaitAction& wait);
  void work_on(std::uint32_t lane);
  /// Does on its lane what is to be done there, when it may start.
  void perform_on_lane(const Action& action);
  void wait_for(LaneCount count);
  void note_ends();

  Seconds time_computing();
  void finish_timeline();
  Seconds now() const { return Clock::now() - begin_; }

  const Script script_;
  const OpenTiers& tiers_;
  const Kernels& kernels_;
  std::vector<Transfer> transfers_;  // by slot; one that was waited for is let go
  Clock::time_point begin_;
  Seconds clock_{0};  // when the last action ended, from the beginning of the step
  Timeline timeline_;
  std::vector<Interval> runs_;  // room for those of a step, so that none is taken in it

  const LaneOptions options_;
  const StepContext* context_ = nullptr;  // of the step that lanes work on
  StepGate* gate_ = nullptr;              // its gate, or none
  std::unique_ptr<std::atomic<std::uint32_t>[]>
      arrived_;                     // by lane: transfers of a link that were seen to end
  std::unique_ptr<LaneTeam> team_;  // last: its threads use all of the others
};

}  // namespace terrace

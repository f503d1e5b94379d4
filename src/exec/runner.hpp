// Runner: carries out a script, step after step, and notes when everything happened.
//
// Allocates nothing in a step but what the mover notes about a transfer. One thread at a time.
#pragma once

#include <chrono>
#include <span>
#include <vector>

#include "backends/backend.hpp"
#include "exec/script.hpp"
#include "exec/step_gate.hpp"
#include "terrace/simulate.hpp"

namespace terrace {

class AccessCount;

class Runner {
 public:
  /// `instructions`: how many the plan has. Tiers and kernels outlive the runner.
  Runner(Script script, std::size_t instructions, const OpenTiers& tiers, const Kernels& kernels);

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
  void finish_timeline();
  Seconds now() const { return Clock::now() - begin_; }

  const Script script_;
  const OpenTiers& tiers_;
  const Kernels& kernels_;
  std::vector<Transfer> transfers_;  // by slot; one that was waited for is let go
  Clock::time_point begin_;
  Seconds clock_{0};  // when the last action ended, from the beginning of the step
  Timeline timeline_;
};

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// LiveTraining: steps of a program on objects of a manager, without a plan. The graph gives the hints of 003
// section III-E as a compiler would insert them, and the manager's policy decides while the step runs.
//
//   Manager manager({"dram:1GiB", "emulated:8GiB,read=39GB/s,write=13GB/s,latency=304ns"}, "LM");
//   LiveTraining training(program, manager, seed);
//   training.step({seed, step, rate}, fill).value();
//
// Kernels are those of a run with all memory, in the same order, so that results have the same bits. One
// thread at a time; program and manager outlive it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "backends/backend.hpp"
#include "plan/step_uses.hpp"
#include "terrace/manager.hpp"
#include "terrace/program.hpp"

namespace terrace {

class LiveTraining {
 public:
  /// Creates what outlives steps and sets it as the seed says. Throws ResultError where the tiers have no
  /// room.
  LiveTraining(const Program& program, Manager& manager, std::uint64_t seed);
  LiveTraining(const LiveTraining&) = delete;
  ~LiveTraining();

  /// Sets the memory of an input before a step.
  using Fill = std::function<void(const Tensor& input, std::span<std::byte> memory)>;
  /// One step. Fails where a kernel's operands find no memory that it can use.
  Result<void> step(const StepContext& context, const Fill& fill);
  /// What a result of the last step held, as it is stored.
  const std::vector<std::byte>& result(std::size_t index) const { return results_[index]; }
  /// How long kernels ran in the last step, with what they were charged for slow memory.
  Seconds computing() const { return computing_; }

 private:
  Result<void> create(TensorId tensor);
  void initialise(std::uint64_t seed);
  Result<void> create_inputs(const Fill& fill);
  Result<void> announce(std::uint32_t kernel);
  Result<std::vector<Pin>> hold(std::uint32_t kernel);
  void compute(std::uint32_t kernel, const StepContext& context);
  void leave(std::uint32_t kernel);
  Result<void> read_results();
  void end();

  const Program& program_;
  const Graph& graph_;
  Manager& manager_;
  const StepUses uses_;
  const Kernels kernels_;
  std::vector<std::optional<ObjectId>> objects_;  ///< by tensor; one without bytes has none
  std::vector<std::byte*> memory_;                ///< by tensor: where it is pinned
  std::vector<TierId> tiers_;                     ///< by tensor: there
  std::vector<std::vector<std::byte>> results_;
  Seconds computing_{0};
};

}  // namespace terrace

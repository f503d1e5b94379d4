// What a trainer holds. Members are in the order in which they need each other.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "exec/checkpoint_writer.hpp"
#include "exec/runner.hpp"
#include "exec/store.hpp"
#include "kernels/cpu/instantiate.hpp"
#include "terrace/error.hpp"
#include "terrace/trainer.hpp"

namespace terrace {

struct Trainer::State {
  Program program;
  TrainerOptions options;
  OpenTiers tiers;
  cpu::Kernels kernels;
  std::unique_ptr<Store> store;
  std::unique_ptr<Runner> runner;
  std::vector<KeptTensor> kept;
  std::uint64_t steps = 0;
  std::optional<EnvironmentError> failure;   ///< tensors may be of two steps
  std::unique_ptr<CheckpointWriter> saving;  ///< the checkpoint in progress; its outcome is not known yet

  const Graph& graph() const { return program.graph; }
  /// Makes everything that follows from a plan. pre: its regions lie within the tiers
  void follow(const Plan& plan, const Machine& machine);
  StepContext context() const { return {options.seed, steps, options.learning_rate}; }
  /// pre: there is a tensor of that name
  TensorId find(std::string_view name) const;
  /// The tensor of that name, or the parts it is kept in. pre: there is one, and it is persistent
  std::vector<TensorId> find_persistent(std::string_view name) const;
  std::size_t elements(const std::vector<TensorId>& tensors) const;
  /// Throws what ended the last step, if something did.
  void require_sound() const;
  /// From here on nothing that uses tensors is allowed.
  void fail(const char* reason, EnvironmentError::Place place);
  /// `count`: of accesses; none: they are not counted.
  void step(AccessCount* count = nullptr);
  /// Whoever changes tensors between steps.
  void wait_for_checkpoint() const {
    if (saving) saving->wait();
  }
};

}  // namespace terrace

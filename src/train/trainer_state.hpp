// What a trainer holds: tiers and the state of training, and what it has for each of its graphs. Members are
// in the order in which they need each other.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "backends/backend.hpp"
#include "exec/relocation.hpp"
#include "exec/runner.hpp"
#include "exec/store.hpp"
#include "terrace/error.hpp"
#include "terrace/trainer.hpp"
#include "train/checkpoint_writer.hpp"

namespace terrace {

/// A graph, ready to be trained. Its parts refer to each other, so it stays where it is.
struct ReadyGraph {
  explicit ReadyGraph(Program compiled)
      : program(std::move(compiled)), kernels(program.backend->instantiate(program.graph)) {}
  ReadyGraph(const ReadyGraph&) = delete;
  ReadyGraph& operator=(const ReadyGraph&) = delete;

  const Program program;
  const Kernels kernels;
  std::unique_ptr<Store> store;
  std::unique_ptr<Runner> runner;
  std::vector<KeptTensor> kept;

  /// Makes everything that follows from a plan. pre: its regions lie within the tiers
  void follow(const Plan& plan, const Machine& machine, const OpenTiers& tiers);
};

struct Trainer::State {
  TrainerOptions options;
  OpenTiers tiers;
  std::vector<std::unique_ptr<ReadyGraph>> graphs;
  std::size_t current = 0;  ///< the one that is trained
  std::uint64_t steps = 0;
  std::optional<EnvironmentError> failure;   ///< tensors may be of two steps
  std::unique_ptr<Relocation> moving;        ///< to the current graph, in part
  std::unique_ptr<CheckpointWriter> saving;  ///< the checkpoint in progress; its outcome is not known yet

  ReadyGraph& now() const { return *graphs[current]; }
  const Graph& graph() const { return now().program.graph; }
  Result<std::size_t> add(Program program, const Plan& plan, const Machine& machine);
  void begin_moving(std::size_t number);
  /// Goes on with what was begun.
  void move();
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
  /// All tensors are of one step again.
  void mend() {
    moving.reset();
    failure.reset();
  }
  /// Whoever changes tensors between steps.
  void wait_for_checkpoint() const {
    if (saving) saving->wait();
  }
};

/// Whether a plan is one for this graph and machine, and whether it fits in the tiers that are open.
Result<void> require_fitting(const Program& program, const Plan& plan, const Machine& machine);
Result<void> require_room(const OpenTiers& tiers, const std::vector<Bytes>& budget, const Machine& machine);
/// Whether both keep the same from step to step, however they do.
Result<void> require_same_state(const Graph& trained, const Graph& added);
/// Whether both were compiled for as many threads.
Result<void> require_threads(const Program& present, const Program& added);
/// For what outlives steps, while it cannot be in the tiers. Others may have the same folder, and the same
/// process number elsewhere.
std::filesystem::path state_file(const std::filesystem::path& folder);
/// Ends that: loads it, after `before`, and removes the file. Throws EnvironmentError, which names the file,
/// where either fails.
void take_back(
    Trainer& trainer, const std::filesystem::path& file, const std::function<void()>& before = [] {});

}  // namespace terrace

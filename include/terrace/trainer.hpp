// SPDX-License-Identifier: Apache-2.0
// Trainer: trains a program (program.hpp) with all of its tensors in one memory, or under a plan over several
// tiers. It holds the tiers, the kernels and the state of training.
//
// A step carries out a plan's instructions: one thread issues the kernels, transfers go on behind them. With
// the same seed and number of threads every run gives the same bits, wherever tensors lie. Inputs must be
// filled before each step: their memory may be used again within it. One thread at a time.
//
// Beyond its tiers a trainer holds the kernels' primitives and, where a tier is a disk, 8 MiB for requests
// that are not aligned and 4 MiB of staging. A step takes no memory but the mover's few notes about each
// transfer, which it gives back. Reading, writing, saving and loading weights take memory for two copies of
// one tensor; writing a checkpoint takes 4 MiB. Using another graph takes as much, and a copy of each tensor
// that lies where another is to go: what the fastest tier has free then, and what is missing beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "terrace/graph.hpp"
#include "terrace/profile.hpp"
#include "terrace/program.hpp"
#include "terrace/simulate.hpp"
#include "terrace/tier.hpp"
#include "terrace/verify.hpp"

namespace terrace {

/// `graph` with everything that outlives steps in `network` and is not in it: no kernel uses that, and plans
/// keep it. So a path through a network that skips some of it keeps the weights and states of what it skips.
/// pre: neither is compiled; no other tensor of the graph has such a name
Graph with_state_of(Graph graph, const Graph& network);

struct TrainerOptions {
  std::uint64_t seed = 0;
  float learning_rate = 0.01F;
  /// For tests: opens the tiers instead of `open_tier`.
  std::function<Result<std::unique_ptr<Tier>>(const TierSpec&)> open = {};
  /// For tests: called by the writing thread before it reads a tensor of a checkpoint.
  std::function<void()> before_each_kept = {};
};

class Trainer {
 public:
  /// Takes the memory and sets every weight and state to its initial value. Fails where the memory is not
  /// there, naming what is needed and what is available; nothing is allocated then.
  static Result<Trainer> start(Program program, const TrainerOptions& options);
  /// Starts under a plan: opens the machine's tiers, each as large as the plan's budget for it; one of
  /// budget zero is not opened. Fails as well where the plan is of another graph or machine, where a tier
  /// has no spec on this computer or is not what the machine says, and where the disk is too small. pre: the
  /// machine is valid
  static Result<Trainer> start(Program program, const VerifiedPlan& plan, const Machine& machine,
                               const TrainerOptions& options);
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  const Program& program() const;
  std::uint64_t steps_done() const;
  float learning_rate() const;
  void set_learning_rate(float rate);

  /// Returns where to put an input for the next step, row-major. pre: the graph has such an input
  std::span<float> input(std::string_view name);
  std::span<std::int32_t> integer_input(std::string_view name);
  std::span<std::byte> input_bytes(std::string_view name);  ///< of any type
  /// Throws EnvironmentError where a transfer fails. The trainer has `failed` then: tensors may be of two
  /// steps, so whatever would use them throws the same again, until a checkpoint is loaded.
  void step();
  /// Does a step and adds the time each kernel took to `times`. pre: one entry for each kernel of the
  /// program's graph
  void step(std::span<Seconds> times);
  /// Does a step with the same bits, slower, and counts how often every kernel read and wrote its operands
  /// (access_profile.hpp says what is counted). An operand is counted by the pages that are its own, which
  /// are all of them where the tier's granularity, or the program's alignment, is a page. Fails, and does no
  /// step, where accesses are being counted already, and on processors other than x86-64.
  Result<KernelAccesses> counted_step();
  bool failed() const;
  /// Returns when everything in the last step happened. A copy's interval is from its start to its
  /// completion, and bytes moved are those of whole regions. An alloc or free has the moment at which it was
  /// passed.
  const Timeline& timeline() const;
  /// A result of the last step, row-major.
  std::vector<float> result(std::size_t index) const;
  std::vector<std::byte> result_bytes(std::size_t index) const;  ///< of any type

  /// Changes the plan from the next step on, on the same tiers, whatever rates the machine says
  /// they have. What outlives steps goes through a file in `folder`, which is gone afterwards. Fails, and
  /// changes nothing, as `start` does and where the plan needs more of a tier than is open; throws
  /// EnvironmentError where a disk fails, and names the file where that has the only sound state.
  Result<void> change_plan(const VerifiedPlan& plan, const Machine& machine,
                           const std::filesystem::path& folder);

  /// Makes another graph ready whose state is the same: its persistent tensors have the names, kinds, types
  /// and shapes of the present one's, positions aside, which follow from the graph; what is kept in parts
  /// counts as the whole. For networks whose inputs change in size, or that take several paths: a graph may
  /// be added whenever it is first met. Returns its number; the graph that training started with is number 0.
  /// Fails, and changes nothing, as `change_plan` does and where the states differ, naming the first tensor
  /// that does.
  Result<std::size_t> add_graph(Program program, const VerifiedPlan& plan, const Machine& machine);
  /// Adds a graph with everything in the one memory that the first program was given.
  Result<std::size_t> add_graph(Program program);
  /// Returns the bytes that are open of each tier, which a plan of a graph to be added may need.
  std::vector<Bytes> budget() const;
  /// Profiles a graph that nobody knew of when training started, such as a new path through control flow:
  ///
  ///   Profile profile = trainer.measure(program, machine, folder).value();
  ///   Plan plan = make_plan("best", {program.graph, machine, profile, trainer.budget()}).value();
  ///   auto verified = verify(program.graph, machine, std::move(plan)).value();
  ///   trainer.use_graph(trainer.add_graph(std::move(program), verified, machine).value());
  ///
  /// Kernels are measured between steps in the tiers' own memory, so that the process takes no more of it
  /// than before. State that is in the way there waits in a file in `folder`, which is gone afterwards;
  /// inputs and results of the last step are gone, too. Times are kept in `profiles.sqlite` in the folder,
  /// and those that are there already are not measured again; where that cannot be used, they are not kept. A
  /// kernel that does not fit in the fastest tier is estimated. Fails, and changes nothing, where the program
  /// has another number of threads, the machine is not the tiers', or the state cannot be written; throws
  /// EnvironmentError where a disk fails, and names the file where that has the only sound state.
  Result<Profile> measure(const Program& program, const Machine& machine,
                          const std::filesystem::path& folder);
  const Program& program(std::size_t number) const;
  /// Trains that graph from the next step on, from the state as it is, to the bit. Inputs and results of
  /// the one before are gone. Throws EnvironmentError where a tier fails or memory is missing: the trainer
  /// has `failed` then, but nothing is lost, and calling this again goes on. pre: there is such a graph;
  /// after a failure here it is the same one
  void use_graph(std::size_t number);

  /// A persistent tensor (a weight, a state, running statistics), row-major as PyTorch stores it; one that is
  /// kept in parts under the name of the whole, too. pre: there is one
  std::vector<float> read(std::string_view name) const;
  void write(std::string_view name, std::span<const float> values);
  /// Read and write persistent tensors of any type.
  std::vector<std::byte> read_bytes(std::string_view name) const;
  void write_bytes(std::string_view name, std::span<const std::byte> values);

  /// All weights and running statistics, in the safetensors format. Loading wants every weight of the graph
  /// in the right shape; what else the file holds is left alone.
  Result<void> save_weights(const std::filesystem::path& path) const;
  Result<void> load_weights(const std::filesystem::path& path);

  /// All that outlives a step, with the number of steps done, the seed and the learning rate, so that
  /// training goes on with the same bits, under any plan. The file at `path` is replaced as a whole: whatever
  /// happens, what is there is the old checkpoint or the new one. Fails where the path is none to write to;
  /// throws EnvironmentError where the disk is full or fails.
  Result<void> save_checkpoint(const std::filesystem::path& path);
  /// Saves a checkpoint behind the steps that follow: they are held back only before they change what is not
  /// written yet. Waits for the one before and fails as that does. What becomes of this one
  /// `finish_checkpoint` says; destroying the trainer waits, too, and drops an error.
  Result<void> start_checkpoint(const std::filesystem::path& path);
  /// Returns when the checkpoint that was started is written. Does nothing where none was.
  Result<void> finish_checkpoint();
  /// Fails, and changes nothing, where the file is damaged or of another graph. Ends `failed`.
  Result<void> load_checkpoint(const std::filesystem::path& path);

 private:
  struct State;
  static Result<Trainer> start(Program program, const Plan& plan, const Machine& machine,
                               const TrainerOptions& options);
  explicit Trainer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace terrace

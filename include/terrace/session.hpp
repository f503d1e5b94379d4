// SPDX-License-Identifier: Apache-2.0
// Session: leads a graph all the way to training in a fraction of the memory it asks for.
//
//   terrace::Session session(graph, {.fast = "20%"});
//   const Machine machine = session.calibrate().value();  // how fast the tiers and links are
//   const Profile profile = session.profile().value();    // how long every kernel takes
//   const Plan plan = session.plan().value();             // what lives where, and when it moves
//   session.verify().value();                             // the plan is proven safe
//   session.train(100, fill).value();                     // and carried out
//
// A stage does the stages that it needs first, each of them once, so `train` alone does everything. Measured
// machines and times are kept in the user's cache folder. A stage that fails has changed nothing: its error
// is one sentence, and it may be called again. A failing disk throws EnvironmentError.
//
// Everything happens on the calling thread, callbacks too; only `stop` may be requested from elsewhere. One
// thread at a time. In a library built without oneDNN, neural networks are planned and not trained.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "terrace/pipeline.hpp"
#include "terrace/trainer.hpp"

namespace terrace {

enum class SessionStage { calibrate, compile, profile, plan, verify, train };
/// Its name in lower case.
std::string_view to_string(SessionStage stage);

struct SessionProgress {
  SessionStage stage;
  std::string text;  ///< what happens now, such as `measuring kernels, 12/40`
};

struct SessionOptions {
  /// How much fast memory training may use: an amount such as `2GiB`, or a share of the graph's peak such as
  /// `20%`. Empty: as much as it wants, so that `train` needs neither a machine nor a plan.
  std::string fast = {};
  std::vector<std::string> slow = {};  ///< slower tiers, the fastest first; none: a file in the cache
  std::string planner = {};            ///< a name that planner_named takes; empty: the best
  std::string machine = "this";        ///< or a preset, or a file; only this computer trains
  unsigned threads = 0;                ///< that compute; 0: as many as this process can keep busy
  TrainerOptions trainer = {};         ///< seed and learning rate
  bool adjust = true;                  ///< plans again where steps show that the computer has drifted
  bool measure_again = false;          ///< measures this computer even if it was measured before
  std::shared_ptr<const Backend> backend = {};  ///< whose kernels run (foreign.hpp); none: this processor's
  std::function<void(const SessionProgress&)> progress = {};
  /// Ends a stage early: it fails with ErrorCode::stopped. Training ends between two steps, and that is no
  /// failure.
  std::stop_token stop = {};
};

/// What one call of `train` did.
struct TrainingRun {
  std::vector<Seconds> step_seconds;  ///< how long each step took; its inputs were filled before
  std::vector<float> loss;            ///< the graph's first result after each step; empty: it has none
  std::vector<Bytes> peak;            ///< the most bytes of tensors at once in each tier
  std::uint32_t plan_changes = 0;     ///< how often another plan was taken up
  bool stopped = false;               ///< the stop token ended it before all steps were done
  std::uint64_t steps() const { return step_seconds.size(); }
};

/// Fills every input of the trainer's graph (Trainer::input) for a step; the first step is number 0.
using FillInputs = std::function<void(std::uint64_t step, Trainer& trainer)>;

/// Inputs of the right shape and range that follow from the seed and the step's number alone.
/// pre: integer inputs are labels of a loss or indices of an embedding
FillInputs synthetic_inputs(const Graph& graph, std::uint64_t seed = 0);

class Session {
 public:
  /// Does nothing yet: what is wrong with the options shows in the first stage.
  explicit Session(Graph graph, SessionOptions options = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  /// Returns the machine: this computer, measured, or the one that the options name.
  Result<Machine> calibrate();
  /// Measures or estimates how long each kernel takes by where its operands lie. Fails where the fast memory
  /// is below the least that any plan needs, naming the kernel and the bytes missing.
  Result<Profile> profile();
  /// Returns the planner's plan.
  Result<Plan> plan();
  /// Proves the plan safe. Fails with the first violation.
  Result<VerifiedPlan> verify();
  /// Proves a plan safe that somebody else has made for this graph and machine, and which is the session's
  /// from here on. Fails, too, where it takes more of a tier than budget(). pre: training has not begun
  Result<VerifiedPlan> verify(Plan plan);

  /// Trains so many steps more, and returns early where a stop is requested. Whatever ends it, all tensors
  /// are of the same step: training goes on with the next call, or from a checkpoint of trainer(). Fails,
  /// before the first step, as the other stages do and where the machine is not this computer; throws
  /// EnvironmentError where a tier fails in the middle of a step.
  Result<TrainingRun> train(std::uint64_t steps, const FillInputs& fill);

  /// Takes the memory and sets the weights, so that a checkpoint can be loaded before the first step.
  Result<void> start();
  /// pre: `start` or `train` was called and did not fail
  Trainer& trainer();

  /// Returns the graph as it is compiled, with kernels split where it has to fit. Fails as calibrate does.
  Result<Workload> workload();
  /// Returns how many bytes of each tier may be used. Fails as `workload` does, and where `fast` is no
  /// amount.
  Result<std::vector<Bytes>> budget();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace terrace

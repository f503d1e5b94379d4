// SPDX-License-Identifier: Apache-2.0
// QueueRunner: carries out a verified plan on a device, step after step, by issuing it ahead.
//
// Every lane of the plan is a queue of the device, or a thread where the device cannot do the work itself:
// transfers with disks and with memory that is not pinned, kernels of the processor. The host issues a whole
// step and blocks at its end only, or inside of it where queues cannot wait for flags. A step in which
// something failed throws EnvironmentError with the device, the instruction and the cause; by then nothing of
// it is under way any more, and what tensors hold is undefined. One thread at a time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "backends/queued_kernel.hpp"
#include "exec/queue_porter.hpp"
#include "exec/queue_script.hpp"
#include "mover/failure.hpp"
#include "terrace/verify.hpp"

namespace terrace {

/// How exactly a kernel or copy that fails on the device can be named: queues note how far they have come,
/// which takes them a little time.
enum class QueueMarks {
  where_waited,  ///< where another lane waits anyway
  everywhere,    ///< behind each kernel and transfer
};

class QueueRunner {
 public:
  struct Parts {
    const Graph& graph;
    const Machine& machine;
    const VerifiedPlan& plan;
    const OpenTiers& tiers;
    std::vector<const Kernels*> kernels;  ///< one for each engine of the machine; those of an engine on the
                                          ///< device are QueuedKernels
  };
  struct Times {
    Seconds issue{0};  ///< until the host had issued everything
    Seconds step{0};
  };

  /// Everything in `parts` outlives the runner. pre: some tier is on a device, and all that are, on the same
  /// one. Throws EnvironmentError where the device does.
  explicit QueueRunner(Parts parts, QueueMarks marks = QueueMarks::where_waited);
  QueueRunner(const QueueRunner&) = delete;

  void step(const StepContext& context);

  /// Puts launches of kernels that `repeats` picks into bundles, so that later steps issue many of them at
  /// once. Such a kernel does the same in every step, whatever the context. Each is asked to enqueue itself,
  /// and none of it takes place. Throws where one cannot; then, and before, steps issue each on its own.
  void bundle(const std::function<bool(std::uint32_t kernel)>& repeats, const StepContext& context);
  void unbundle();
  std::size_t bundles() const { return bundles_.size(); }

  const Times& times() const { return times_; }  ///< of the last step
  const QueueScript& script() const { return script_; }

 private:
  struct Lane {
    std::unique_ptr<DeviceQueue> queue;   // of a device lane
    std::unique_ptr<DeviceFlag> mark;     // how far it is known to be; nullptr where there are no flags
    std::unique_ptr<QueuePorter> porter;  // of a host lane
    std::uint32_t before = 0;             // actions of earlier steps: counts never fall
    std::uint32_t issued = 0;             // of this step
  };

  /// Launches that follow each other on a lane, with nothing to wait for and nobody waiting in between.
  struct Bundle {
    std::vector<std::uint32_t> launches;  // actions, in their order
    std::unique_ptr<DeviceBundle> kernels;
  };

  QueuedKernel* queued(const QueueLaunch& launch) const;
  std::vector<Bundle> runs_of_launches(const std::function<bool(std::uint32_t)>& repeats) const;
  void fill(Bundle& bundle, const StepContext& context);
  void launch(std::uint32_t number, const StepContext& context);
  void issue(std::uint32_t number);
  void make_wait(DeviceQueue& queue, std::uint32_t action);
  void carry_out(std::uint32_t number) noexcept;
  void wait_on_host(std::uint32_t action);
  Lane& lane_of(std::uint32_t action) { return lanes_[script_.actions[action].lane]; }
  /// What its lane's count is when the action is over.
  std::uint32_t count_after(std::uint32_t action) const;
  bool is_marked(const QueueAction& action) const;
  bool is_known_over(std::uint32_t action) const;

  void finish_all() noexcept;
  bool finish(DeviceQueue& queue) noexcept;
  void note_failure(const std::string& where) noexcept;
  [[noreturn]] void raise_failure() const;
  std::string text(const QueueAction& action) const;
  std::string what_is_under_way() const;

  const Parts parts_;
  const QueueMarks marks_;
  const QueueScript script_;
  Device& device_;
  std::vector<std::unique_ptr<DeviceEvent>> events_;  // by action; nullptr where no event is needed
  std::vector<QueuedKernel*> launches_;               // by action; nullptr where it is no launch
  StepContext context_;
  Times times_;

  std::atomic<bool> failed_ = false;
  std::mutex failure_mutex_;  // guards these two
  std::optional<Failure> failure_;
  std::string where_;

  std::vector<Bundle> bundles_;
  std::vector<const Bundle*> bundle_of_;  // by action; nullptr where it is issued on its own

  std::vector<Lane> lanes_;  // last: porters end first
};

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// A BlockEngine transfers bytes between memory and one block tier, in both directions at once.
//
// One thread owns the tier's queue and keeps as many requests in flight as the queue accepts. It submits the
// task of highest priority next; reads and writes of equal priority alternate. A task that fails ends only
// when none of its requests is in flight any more. start(), raise() and stop() are thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "mover/disk_request.hpp"

namespace terrace {

class BlockEngine {
 public:
  /// Borrows its arguments. `scratch` is one aligned block. Throws EnvironmentError if no thread can be
  /// started.
  BlockEngine(Tier& tier, BufferPool& pool, std::byte* scratch);
  ~BlockEngine() { stop(); }
  BlockEngine(const BlockEngine&) = delete;

  void start(std::shared_ptr<DiskTask> task);
  /// Reports that some task's ticket has become urgent.
  void raise() noexcept { raised_.store(true); }
  /// Finishes all tasks, then ends the thread. pre: no task is started any more
  void stop() noexcept;

 private:
  using Tasks = std::list<std::shared_ptr<DiskTask>>;
  static constexpr std::size_t kPriorities = 3;

  void run() noexcept;
  void serve();
  std::size_t wait(std::vector<BlockCompletion>& completions);
  bool accept();
  void enlist(std::shared_ptr<DiskTask> task);
  void promote();
  void fill();
  bool start_one();
  bool start_from(Tasks& tasks);
  bool begin(const std::shared_ptr<DiskTask>& task);
  bool build(const std::shared_ptr<DiskTask>& task, DiskRequest& request);
  void complete(const BlockCompletion& completion);
  void succeed(std::size_t slot);
  void deliver(const DiskRequest& request);
  void release(std::size_t slot);
  void unlist(Tasks& tasks, Tasks::iterator at);
  void fail(DiskTask& task, const Failure& failure);
  void settle(DiskTask& task) noexcept;
  void submit(std::size_t slot);
  void drain() noexcept;
  void abandon(const Failure& failure);

  Tier& tier_;
  BlockQueue& queue_;
  BufferPool& pool_;
  std::byte* const scratch_;
  const DiskRules rules_;

  std::mutex mutex_;  // guards the three members below
  std::vector<std::shared_ptr<DiskTask>> incoming_;
  std::optional<Failure> broken_;  // set once the queue failed as a whole, so that nothing can be started
  bool stopping_ = false;
  std::atomic<bool> raised_{false};

  // Only the thread uses the members below.
  std::array<std::array<Tasks, 2>, kPriorities> tasks_;  // tasks with units left, by priority and access
  std::vector<DiskRequest> slots_;                       // a request's index here is its tag
  std::size_t in_flight_ = 0;  // submitted to the queue and not yet seen to complete
  std::vector<std::size_t> free_slots_;
  bool changing_block_ =
      false;  // only one partial write at a time, so that two writes into one block do not undo each other
  Access turn_ = Access::read;

  std::thread thread_;
};

}  // namespace terrace

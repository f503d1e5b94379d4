// BlockEngine: carries bytes between memory and one block tier, both directions at once.
//
// One thread owns the tier's queue and keeps as many requests in flight as it takes. What it submits next has
// the highest priority; reads and writes of equal priority take turns. A task that fails ends only when
// nothing of it is in flight any more. start(), raise() and stop() are thread-safe.
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
  /// Borrows all. `scratch` is one block, aligned. Throws EnvironmentError if no thread can be started.
  BlockEngine(Tier& tier, BufferPool& pool, std::byte* scratch);
  ~BlockEngine() { stop(); }
  BlockEngine(const BlockEngine&) = delete;

  void start(std::shared_ptr<DiskTask> task);
  /// Some task's ticket has become urgent.
  void raise() noexcept { raised_.store(true); }
  /// Finishes everything started, then ends the thread. pre: nothing is started any more
  void stop() noexcept;

 private:
  using Tasks = std::list<std::shared_ptr<DiskTask>>;
  static constexpr std::size_t kPriorities = 3;

  void run() noexcept;
  void serve();
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

  std::mutex mutex_;  // guards these three
  std::vector<std::shared_ptr<DiskTask>> incoming_;
  std::optional<Failure> broken_;  // the queue failed as a whole: nothing can be started
  bool stopping_ = false;
  std::atomic<bool> raised_{false};

  // Used by the thread alone.
  std::array<std::array<Tasks, 2>, kPriorities> tasks_;  // by priority and access: those with units left
  std::vector<DiskRequest> slots_;                       // a request's index is its tag
  std::size_t in_flight_ = 0;  // submitted to the queue and not yet seen to complete
  std::vector<std::size_t> free_slots_;
  bool changing_block_ = false;  // one at a time, so that two writes into one block both last
  Access turn_ = Access::read;

  std::thread thread_;
};

}  // namespace terrace

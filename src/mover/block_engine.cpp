// SPDX-License-Identifier: Apache-2.0
#include "mover/block_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "mover/background.hpp"
#include "mover/block_error.hpp"
#include "mover/pace.hpp"

namespace terrace {
namespace {

DiskRules rules_of(const BlockQueue& queue, const BufferPool& pool) {
  const Bytes request = std::max(queue.block_size(), round_down(queue.request_size(), queue.block_size()));
  return {queue.block_size().count, queue.memory_alignment().count, request.count, pool.buffer_bytes()};
}

}  // namespace

BlockEngine::BlockEngine(Tier& tier, BufferPool& pool, std::byte* scratch)
    : tier_(tier),
      queue_(*tier.blocks()),
      pool_(pool),
      scratch_(scratch),
      rules_(rules_of(queue_, pool)),
      slots_(std::max(1u, queue_.depth())) {
  for (std::size_t slot = slots_.size(); slot > 0; --slot) free_slots_.push_back(slot - 1);
  try {
    thread_ = std::thread(&BlockEngine::run, this);
  } catch (const std::system_error& error) {
    throw EnvironmentError(
        fmt::format("tier {}: the system starts no thread for its requests ({}): raise the limit on "
                    "processes (ulimit -u)",
                    tier.description().name, error.what()),
        {tier.description().name, tier.description().spec.path, 0, error.code().value()});
  }
}

void BlockEngine::start(std::shared_ptr<DiskTask> task) {
  std::unique_lock lock(mutex_);
  if (broken_) {
    task->ticket().fail(*broken_);
    lock.unlock();
    return task->finished(false);
  }
  incoming_.push_back(std::move(task));
  const bool first = incoming_.size() == 1;  // otherwise the thread is awake already
  lock.unlock();
  if (first) queue_.wake();
}

void BlockEngine::stop() noexcept {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  queue_.wake();
  thread_.join();
}

void BlockEngine::run() noexcept {
  try {
    serve();
  } catch (...) {
    abandon(Failure::current());
  }
}

void BlockEngine::serve() {
  std::vector<BlockCompletion> completions(slots_.size());
  while (accept()) {
    fill();
    const std::size_t count = wait(completions);
    in_flight_ -= count;
    for (std::size_t i = 0; i < count; ++i) complete(completions[i]);
  }
}

// The thread that starts a transfer wakes this one, which would run in its place while it submits the
// requests. As long as the disk has nothing to do it is therefore woken in the background.
std::size_t BlockEngine::wait(std::vector<BlockCompletion>& completions) {
  if (in_flight_ > 0) return queue_.wait(completions);
  work_in_background();
  const std::size_t count = queue_.wait(completions);
  work_in_short_turns();
  return count;
}

// Accepts tasks that were started meanwhile. Returns false when all are done and no more will come.
bool BlockEngine::accept() {
  std::vector<std::shared_ptr<DiskTask>> arrived;
  bool stopping = false;
  {
    const std::lock_guard lock(mutex_);
    arrived.swap(incoming_);
    stopping = stopping_;
  }
  if (raised_.exchange(false)) promote();
  for (auto& task : arrived) enlist(std::move(task));
  if (!stopping || free_slots_.size() < slots_.size()) return true;
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [](const auto& lists) { return !lists[0].empty() || !lists[1].empty(); });
}

void BlockEngine::enlist(std::shared_ptr<DiskTask> task) {
  task->sort();
  task->listed = true;
  Tasks& tasks =
      tasks_[static_cast<std::size_t>(task->ticket().priority())][static_cast<std::size_t>(task->access())];
  tasks.push_back(std::move(task));
}

void BlockEngine::promote() {
  for (std::size_t priority = 0; priority + 1 < kPriorities; ++priority) {
    for (std::size_t access : {0, 1}) {
      Tasks& tasks = tasks_[priority][access];
      for (auto at = tasks.begin(); at != tasks.end();) {
        const auto task = at++;
        const auto now = static_cast<std::size_t>((*task)->ticket().priority());
        if (now > priority) tasks_[now][access].splice(tasks_[now][access].end(), tasks, task);
      }
    }
  }
}

void BlockEngine::fill() {
  while (!free_slots_.empty() && start_one()) {
  }
}

// Submits the next request. Returns false when none can start now.
bool BlockEngine::start_one() {
  const Access other = turn_ == Access::read ? Access::write : Access::read;
  for (std::size_t priority = kPriorities; priority-- > 0;) {
    for (const Access access : {turn_, other}) {
      if (!start_from(tasks_[priority][static_cast<std::size_t>(access)])) continue;
      turn_ = access == Access::read ? Access::write : Access::read;
      return true;
    }
  }
  return false;
}

bool BlockEngine::start_from(Tasks& tasks) {
  for (auto at = tasks.begin(); at != tasks.end();) {
    const auto here = at++;
    DiskTask& task = **here;
    if (!task.ticket().failed() && begin(*here)) {
      if (task.exhausted()) unlist(tasks, here);
      return true;
    }
    if (task.ticket().failed()) {
      task.incomplete = true;
      unlist(tasks, here);
    }
  }
  return false;
}

// Starts the task's next request. Returns false when it has to wait for a buffer or for another partial
// write, or when the task has failed because there was no memory to build the request.
bool BlockEngine::begin(const std::shared_ptr<DiskTask>& task) {
  const std::size_t slot = free_slots_.back();
  DiskRequest& request = slots_[slot];
  try {
    if (!build(task, request)) return false;
  } catch (...) {
    request.reset(pool_);
    fail(*task, Failure::current());
    return false;
  }
  free_slots_.pop_back();
  changing_block_ = changing_block_ || request.partial();
  ++task->in_flight;
  submit(slot);
  return true;
}

bool BlockEngine::build(const std::shared_ptr<DiskTask>& task, DiskRequest& request) {
  const auto unit = task->peek(rules_, rules_.request, rules_.buffer);
  if (unit->way != DiskUnit::Way::partial) return request.gather(task, rules_, pool_, queue_);
  if (changing_block_) return false;
  request.begin_partial(task, *unit, scratch_);
  return true;
}

void BlockEngine::complete(const BlockCompletion& completion) {
  DiskRequest& request = slots_[completion.tag];
  const std::uint64_t done = completion.result > 0 ? static_cast<std::uint64_t>(completion.result) : 0;
  const std::uint64_t blocks = done - done % rules_.block;
  if (blocks == 0) {
    const int cause = completion.result < 0 ? static_cast<int>(-completion.result) : 0;
    fail(*request.task(), Failure(block_error(tier_, request.access(), request.offset(), cause)));
    return release(completion.tag);
  }
  if (request.advance(blocks)) return succeed(completion.tag);
  if (request.task()->ticket().failed()) {
    request.task()->incomplete = true;
    return release(completion.tag);
  }
  submit(completion.tag);
}

void BlockEngine::submit(std::size_t slot) {
  queue_.submit(slots_[slot].remainder(slot));
  ++in_flight_;
}

void BlockEngine::succeed(std::size_t slot) {
  DiskRequest& request = slots_[slot];
  if (request.partial() && request.access() == Access::read) {
    request.change_block();
    return submit(slot);
  }
  try {
    deliver(request);
  } catch (...) {
    fail(*request.task(), Failure::current());
  }
  release(slot);
}

void BlockEngine::deliver(const DiskRequest& request) {
  if (!request.partial()) request.scatter();
  const DiskTask& task = *request.task();
  if (Tier* memory = task.memory_tier()) {
    const auto offset = static_cast<std::uint64_t>(request.memory() - memory->memory());
    // The memory's own time overlaps the disk's, but by how much is not known here.
    pace_at(*memory, task.access() == Access::read ? Access::write : Access::read, {request.payload()},
            Seconds{0}, offset);
  }
  request.task()->moved({request.payload()});
}

void BlockEngine::release(std::size_t slot) {
  DiskRequest& request = slots_[slot];
  const std::shared_ptr<DiskTask> task = request.task();
  if (request.partial()) changing_block_ = false;
  request.reset(pool_);
  free_slots_.push_back(slot);
  --task->in_flight;
  settle(*task);
}

void BlockEngine::unlist(Tasks& tasks, Tasks::iterator at) {
  const std::shared_ptr<DiskTask> task = *at;
  tasks.erase(at);
  task->listed = false;
  settle(*task);
}

void BlockEngine::fail(DiskTask& task, const Failure& failure) {
  task.incomplete = true;
  task.ticket().fail(failure);
}

void BlockEngine::settle(DiskTask& task) noexcept {
  if (!task.listed && task.in_flight == 0) task.finished(!task.incomplete);
}

// Requests in flight may still write into memory that will be reused once their transfer has ended, so they
// are waited for.
void BlockEngine::drain() noexcept {
  try {
    BlockCompletion completion;
    while (in_flight_ > 0) in_flight_ -= queue_.wait({&completion, 1});
  } catch (...) {
    // The queue itself is broken and reports no more completions.
  }
}

// The queue itself has failed, so all present and future tasks fail.
void BlockEngine::abandon(const Failure& failure) {
  std::vector<std::shared_ptr<DiskTask>> arrived;
  {
    const std::lock_guard lock(mutex_);
    broken_ = failure;
    arrived.swap(incoming_);
  }
  for (auto& lists : tasks_) {
    for (Tasks& tasks : lists) {
      while (!tasks.empty()) {
        fail(*tasks.front(), failure);
        unlist(tasks, tasks.begin());
      }
    }
  }
  drain();
  for (DiskRequest& request : slots_) {
    const auto task = request.task();
    if (task == nullptr) continue;
    fail(*task, failure);
    request.forget();
    --task->in_flight;
    settle(*task);
  }
  for (auto& task : arrived) {
    fail(*task, failure);
    settle(*task);
  }
}

}  // namespace terrace

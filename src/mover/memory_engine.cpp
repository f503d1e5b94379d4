#include "mover/memory_engine.hpp"

#include <algorithm>
#include <system_error>

#include "mover/background.hpp"
#include "mover/pace.hpp"
#include "mover/stream_copy.hpp"

namespace terrace {

MemoryEngine::MemoryEngine(std::vector<Tier*> tiers, Options options)
    : tiers_(std::move(tiers)), options_(std::move(options)), destinations_(tiers_.size()) {
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    destinations_[i].limit = std::max(1u, tiers_[i]->description().write_threads);
  }
  threads_.reserve(options_.helpers);
  const std::lock_guard lock(mutex_);
  try {
    for (; alive_ < options_.helpers; ++alive_) threads_.emplace_back(&MemoryEngine::helper, this, alive_);
  } catch (const std::system_error&) {
    // With fewer helpers, the existing ones and the waiting threads do the work. helpers() reports their
    // number.
  }
}

void MemoryEngine::start(std::shared_ptr<CopyJob> job) {
  std::unique_lock lock(mutex_);
  CopyJob& here = *job;
  here.sequence = sequence_++;
  here.queued_at = here.ticket.priority();
  here.queued = true;
  Queue& queue = queue_of(here);
  here.place = queue.insert(queue.end(), std::move(job));
  ++open_;
  lock.unlock();
  work_.notify_one();
}

void MemoryEngine::raise(CopyJob& job) {
  const std::lock_guard lock(mutex_);
  if (!job.queued || job.queued_at == Priority::urgent) return;
  Queue& before = queue_of(job);
  job.queued_at = Priority::urgent;
  Queue& after = queue_of(job);
  after.splice(after.end(), before, job.place);
}

void MemoryEngine::help(std::span<CopyJob> jobs) {
  std::unique_lock lock(mutex_);
  const auto closed = [&] {
    return std::all_of(jobs.begin(), jobs.end(), [](auto& job) { return job.closed; });
  };
  while (!closed()) {
    if (auto chunk = take_from(jobs)) {
      work(std::move(chunk), lock);
    } else {
      progress_.wait(lock);
    }
  }
  if (best_queue() != nullptr) work_.notify_one();
}

void MemoryEngine::stop() noexcept {
  std::unique_lock lock(mutex_);
  while (open_ > 0) {
    if (auto chunk = take_best()) {
      work(std::move(chunk), lock);
    } else {
      progress_.wait(lock);
    }
  }
  stopping_ = true;
  work_.notify_all();
  lock.unlock();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

unsigned MemoryEngine::helpers() const noexcept {
  const std::lock_guard lock(mutex_);
  return alive_;
}

// The chunk is taken after `before_chunk` has returned, so that a helper which ends there loses no chunk.
void MemoryEngine::helper(unsigned number) {
  work_in_background();
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] { return stopping_ || best_queue() != nullptr; });
    if (stopping_) return;
    lock.unlock();
    const bool lost = !before_chunk(number);
    lock.lock();
    if (lost) break;
    if (auto chunk = take_best()) work(std::move(chunk), lock);
  }
  --alive_;
  work_.notify_one();  // this helper consumed a notification that another must now receive
}

bool MemoryEngine::before_chunk(unsigned number) const {
  if (!options_.before_chunk) return true;
  try {
    options_.before_chunk(number);
    return true;
  } catch (...) {
    return false;
  }
}

MemoryEngine::Queue* MemoryEngine::best_queue() {
  for (const Priority priority : {Priority::urgent, Priority::normal, Priority::background}) {
    Queue* best = nullptr;
    for (Destination& destination : destinations_) {
      Queue& queue = destination.queues[static_cast<std::size_t>(priority)];
      if (queue.empty() || destination.running >= destination.limit) continue;
      if (best == nullptr || queue.front()->sequence < best->front()->sequence) best = &queue;
    }
    if (best != nullptr) return best;
  }
  return nullptr;
}

std::optional<MemoryEngine::Chunk> MemoryEngine::take_best() {
  Queue* queue = best_queue();
  if (queue == nullptr) return std::nullopt;
  return cut(*queue->front());
}

std::optional<MemoryEngine::Chunk> MemoryEngine::take_from(std::span<CopyJob> jobs) {
  for (CopyJob& job : jobs) {
    if (job.queued && destination(job).running < destination(job).limit) return cut(job);
  }
  return std::nullopt;
}

// Hands out the next bytes of the job. Once its transfer has failed, the rest is handed out as one empty
// chunk, so that a failed job ends like a complete one.
MemoryEngine::Chunk MemoryEngine::cut(CopyJob& job) {
  Chunk chunk{*job.place, job.next_move, job.next_position, {}};
  if (job.ticket.failed()) {
    job.incomplete = true;
    job.next_move = job.moves.size();
  }
  while (job.next_move < job.moves.size() && chunk.bytes < options_.chunk) {
    const Bytes left = job.moves[job.next_move].from.bytes - Bytes{job.next_position};
    const Bytes taken = std::min(left, options_.chunk - chunk.bytes);
    chunk.bytes += taken;
    job.next_position += taken.count;
    if (taken < left) break;
    ++job.next_move;
    job.next_position = 0;
  }
  if (job.next_move == job.moves.size()) {
    job.queued = false;
    queue_of(job).erase(job.place);
  }
  ++job.working;
  ++destination(job).running;
  if (best_queue() != nullptr) work_.notify_one();
  return chunk;
}

void MemoryEngine::work(std::optional<Chunk> chunk, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  const std::optional<Failure> failure = carry(*chunk);
  lock.lock();
  finish(*chunk, failure);
  lock.unlock();
  chunk.reset();  // may destroy the transfer, which must not happen under the lock
  lock.lock();
}

std::optional<Failure> MemoryEngine::carry(const Chunk& chunk) const {
  if (chunk.bytes.count == 0) return std::nullopt;
  try {
    const auto started = std::chrono::steady_clock::now();
    copy(chunk);
    pace(chunk, started);
    chunk.job->links.count(chunk.job->link, chunk.bytes);
    return std::nullopt;
  } catch (...) {
    return Failure::current();
  }
}

void MemoryEngine::copy(const Chunk& chunk) const {
  std::byte* to = tiers_[chunk.job->link.to.index]->memory();
  const std::byte* from = tiers_[chunk.job->link.from.index]->memory();
  std::uint64_t position = chunk.position;
  std::uint64_t left = chunk.bytes.count;
  for (std::size_t i = chunk.move; left > 0; ++i) {
    const Move& move = chunk.job->moves[i];
    const std::uint64_t size = std::min(left, move.from.bytes.count - position);
    stream_copy(to + move.to.offset + position, from + move.from.offset + position, size);
    left -= size;
    position = 0;
  }
}

void MemoryEngine::pace(const Chunk& chunk, std::chrono::steady_clock::time_point started) const {
  const Move& move = chunk.job->moves[chunk.move];
  const auto took = [&] { return Seconds(std::chrono::steady_clock::now() - started); };
  pace_at(*tiers_[move.from.tier.index], Access::read, chunk.bytes, took(),
          move.from.offset + chunk.position);
  pace_at(*tiers_[move.to.tier.index], Access::write, chunk.bytes, took(), move.to.offset + chunk.position);
}

void MemoryEngine::finish(const Chunk& chunk, const std::optional<Failure>& failure) {
  CopyJob& job = *chunk.job;
  --destination(job).running;
  --job.working;
  if (failure) {
    job.incomplete = true;
    job.ticket.fail(*failure);
  }
  if (!job.queued && job.working == 0) {
    job.closed = true;
    --open_;
    job.close(!job.incomplete);
  }
  progress_.notify_all();
}

}  // namespace terrace

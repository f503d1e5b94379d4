// A MemoryEngine copies between addressable tiers, chunk by chunk, with its helper threads and the threads
// that wait.
//
// Of the chunks that may start now, the one of highest priority is next, the oldest among equals. At most
// write_threads threads copy into a tier at once. A helper that ends by an exception loses no chunk. It is
// thread-safe. pre: stop() is called before it is destroyed
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "mover/ticket.hpp"

namespace terrace {

/// A CopyJob is the memory-to-memory moves of a transfer over one link.
struct CopyJob : Job {
  using Job::Job;

  std::vector<Move> moves;

  // The engine's mutex guards the members below.
  std::size_t next_move = 0;        // the first byte not yet handed out
  std::uint64_t next_position = 0;  // inside that move
  unsigned working = 0;             // chunks handed out and not yet finished
  bool incomplete = false;
  bool closed = false;
  std::uint64_t sequence = 0;
  bool queued = false;  // whether it has bytes not yet handed out and is in a queue, at this position:
  Priority queued_at = Priority::background;
  std::list<std::shared_ptr<CopyJob>>::iterator place;
};

class MemoryEngine {
 public:
  struct Options {
    unsigned helpers;
    Bytes chunk;
    std::function<void(unsigned)> before_chunk;
  };

  MemoryEngine(std::vector<Tier*> tiers, Options options);

  void start(std::shared_ptr<CopyJob> job);
  /// Reports that the job's ticket has become urgent.
  void raise(CopyJob& job);
  /// Works on these jobs of one transfer until all are closed.
  void help(std::span<CopyJob> jobs);
  /// Finishes all jobs, then ends the helpers.
  void stop() noexcept;
  unsigned helpers() const noexcept;

 private:
  using Queue = std::list<std::shared_ptr<CopyJob>>;
  struct Destination {
    std::array<Queue, 3> queues;  // by priority
    unsigned running = 0;
    unsigned limit = 1;
  };
  struct Chunk {
    std::shared_ptr<CopyJob> job;
    std::size_t move = 0;
    std::uint64_t position = 0;
    Bytes bytes;
  };

  void helper(unsigned number);
  bool before_chunk(unsigned number) const;
  // The callers of these five hold the lock.
  Queue* best_queue();
  std::optional<Chunk> take_best();
  std::optional<Chunk> take_from(std::span<CopyJob> jobs);
  Chunk cut(CopyJob& job);
  void finish(const Chunk& chunk, const std::optional<Failure>& failure);
  // The callers of these do not hold it.
  std::optional<Failure> carry(const Chunk& chunk) const;
  void copy(const Chunk& chunk) const;
  void pace(const Chunk& chunk, std::chrono::steady_clock::time_point started) const;
  void work(std::optional<Chunk> chunk, std::unique_lock<std::mutex>& lock);

  Destination& destination(const CopyJob& job) { return destinations_[job.link.to.index]; }
  Queue& queue_of(const CopyJob& job) {
    return destination(job).queues[static_cast<std::size_t>(job.queued_at)];
  }

  const std::vector<Tier*> tiers_;
  const Options options_;

  mutable std::mutex mutex_;          // guards all members below and the guarded part of every job
  std::condition_variable work_;      // tells helpers that a chunk may have become available
  std::condition_variable progress_;  // tells waiting threads that a chunk has been finished
  std::vector<Destination> destinations_;
  std::uint64_t sequence_ = 0;
  std::size_t open_ = 0;  // jobs not yet closed
  unsigned alive_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace terrace

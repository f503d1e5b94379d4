// The DiskRelay copies bytes from one block tier to another, or within one, through buffers of its own.
//
// One block engine reads into a buffer and the other writes it out; several buffers are in use at once, so
// that both disks are busy. A free buffer goes to the transfer of highest priority. It is thread-safe.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "mover/block_engine.hpp"

namespace terrace {

/// A RelayJob is the disk-to-disk moves of a transfer over one link.
struct RelayJob : Job {
  using Job::Job;

  std::vector<Move> moves;

  // The relay's mutex guards the members below.
  std::size_t next_move = 0;
  std::uint64_t next_position = 0;
  unsigned buffers_in_use = 0;
  bool waiting = false;  // has bytes left to read
  bool incomplete = false;
};

class DiskRelay {
 public:
  /// `engines` has one engine for each block tier, at the tier's index. The relay borrows its arguments and
  /// must outlive the engines' threads. pre: buffer_bytes is a multiple of every block, and at least two of
  /// the largest; memory holds one buffer
  DiskRelay(const std::vector<std::unique_ptr<BlockEngine>>& engines, std::vector<Tier*> tiers,
            std::span<std::byte> memory, std::size_t buffer_bytes);

  void start(std::shared_ptr<RelayJob> job);
  /// Returns when all jobs have ended.
  void drain();

 private:
  struct RelayBuffer {
    std::byte* memory = nullptr;
    std::shared_ptr<RelayJob> job;
    Move part;
  };
  class Leg;

  void fill_buffers(std::unique_lock<std::mutex>& lock);
  std::shared_ptr<RelayJob> best_job();
  void drop(const std::shared_ptr<RelayJob>& job);
  void cut(RelayJob& job, RelayBuffer& buffer);
  void start_leg(RelayBuffer& buffer, Access leg) noexcept;
  void leg_ended(RelayBuffer& buffer, Access leg, bool complete) noexcept;
  void release(RelayBuffer& buffer, bool complete) noexcept;
  void close_if_ended(RelayJob& job);
  std::uint64_t block(TierId tier) const { return tiers_[tier.index]->blocks()->block_size().count; }

  const std::vector<std::unique_ptr<BlockEngine>>& engines_;
  const std::vector<Tier*> tiers_;
  const std::size_t buffer_bytes_;

  std::mutex mutex_;  // guards all members below
  std::condition_variable ended_;
  std::vector<RelayBuffer> buffers_;
  std::vector<RelayBuffer*> free_;
  std::list<std::shared_ptr<RelayJob>> waiting_;
  std::size_t open_ = 0;
};

}  // namespace terrace

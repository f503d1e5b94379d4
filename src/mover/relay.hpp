// SPDX-License-Identifier: Apache-2.0
// The Relay copies bytes between tiers of which neither reaches the other, through buffers of its own: from
// disk to disk, between a disk and a device, between a device and memory that is not pinned.
//
// The engine of one tier fills a buffer and that of the other empties it; several buffers are in use at once,
// so that both are busy. A free buffer goes to the transfer of highest priority. It is thread-safe.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "mover/block_engine.hpp"
#include "mover/copy_pool.hpp"
#include "mover/device_engine.hpp"

namespace terrace {

/// A RelayJob is the moves of a transfer over one link that go through buffers.
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

class Relay {
 public:
  /// `disks` has one engine for each block tier and `devices` one for each tier on a device, at the tier's
  /// index. The relay borrows its arguments and must outlive the engines' threads. pre: buffer_bytes is a
  /// multiple of every block, and at least two of the largest; memory holds one buffer, and is pinned for
  /// every device
  Relay(const std::vector<std::unique_ptr<BlockEngine>>& disks, const std::vector<DeviceEngine*>& devices,
        std::vector<Tier*> tiers, std::span<std::byte> memory, std::size_t buffer_bytes);

  void start(std::shared_ptr<RelayJob> job);
  /// Returns when all jobs have ended and no thread of the relay's own works for it. It may be called again.
  /// pre: no job is started any more
  void stop() noexcept;

 private:
  struct RelayBuffer {
    std::byte* memory = nullptr;
    std::shared_ptr<RelayJob> job;
    Move part;
  };
  class DiskLeg;
  class DeviceLeg;

  void fill_buffers(std::unique_lock<std::mutex>& lock);
  std::shared_ptr<RelayJob> best_job();
  void drop(const std::shared_ptr<RelayJob>& job);
  void cut(RelayJob& job, RelayBuffer& buffer);
  void start_leg(RelayBuffer& buffer, Access leg) noexcept;
  void start_on_disk(RelayBuffer& buffer, Access leg);
  void start_on_device(RelayBuffer& buffer, Access leg);
  void copy_memory(RelayBuffer& buffer, Access leg) noexcept;
  void leg_ended(RelayBuffer& buffer, Access leg, bool complete) noexcept;
  void release(RelayBuffer& buffer, bool complete) noexcept;
  void close_if_ended(RelayJob& job);
  // Without blocks, a move may begin at any byte.
  std::uint64_t block(TierId tier) const {
    BlockQueue* const queue = tiers_[tier.index]->blocks();
    return queue != nullptr ? queue->block_size().count : 1;
  }
  // Returns the move's first byte, which lies behind what else its first block holds.
  std::byte* payload(const RelayBuffer& buffer) const {
    return buffer.memory + buffer.part.from.offset % block(buffer.part.from.tier);
  }

  const std::vector<std::unique_ptr<BlockEngine>>& disks_;
  const std::vector<DeviceEngine*>& devices_;
  const std::vector<Tier*> tiers_;
  const std::size_t buffer_bytes_;

  std::mutex mutex_;  // guards all members below
  std::condition_variable ended_;
  std::vector<RelayBuffer> buffers_;
  std::vector<RelayBuffer*> free_;
  std::list<std::shared_ptr<RelayJob>> waiting_;
  std::size_t open_ = 0;
  std::unique_ptr<CopyPool> copy_pool_;  // exists if there are devices; not guarded
};

}  // namespace terrace

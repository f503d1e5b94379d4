// SPDX-License-Identifier: Apache-2.0
// A paced queue is a block queue that limits the bandwidth asked of its disk.
//
// A disk at full rate takes time from the cores that compute. The limits `read=` and `write=` in the tier's
// spec trade disk bandwidth for that time. Each direction is a lane of virtual time: a request reserves the
// time that its bytes take at the limit and is submitted when its turn has come, so that there are no bursts.
#pragma once

#include <memory>
#include <mutex>

#include "base/clock.hpp"
#include "terrace/tier.hpp"
#include "tiers/block_file.hpp"

namespace terrace {

/// A PaceLane decides when the requests of one direction may start. It is a plain value.
class PaceLane {
 public:
  /// A limit of zero means no limit.
  explicit PaceLane(BytesPerSecond limit) : limit_(limit) {}
  /// Reserves time for a request and returns when it may start, which is at `now` or later.
  Clock::Time reserve(Bytes bytes, Clock::Time now);

 private:
  BytesPerSecond limit_;
  Clock::Time free_at_ = Clock::Time::min();
};

struct PaceLimits {
  BytesPerSecond read, write;  ///< zero means no limit
  bool any() const { return read.value > 0 || write.value > 0; }
};

/// The limits of one disk, for all queues to it together. It is thread-safe.
class SharedPace {
 public:
  explicit SharedPace(PaceLimits limits) : limits_(limits), read_(limits.read), write_(limits.write) {}

  PaceLimits limits() const { return limits_; }
  /// Reserves time for a request and returns when it may start.
  Clock::Time reserve(Access access, Bytes bytes, Clock::Time now) {
    const std::lock_guard lock(mutex_);
    return (access == Access::read ? read_ : write_).reserve(bytes, now);
  }

 private:
  const PaceLimits limits_;
  std::mutex mutex_;  // guards both lanes
  PaceLane read_, write_;
};

/// Wraps a queue to the file and keeps its contract. Throws EnvironmentError where the system starts no
/// thread.
std::unique_ptr<BlockQueue> pace(std::unique_ptr<BlockQueue> queue, BlockFile file,
                                 std::shared_ptr<SharedPace> pace);

}  // namespace terrace

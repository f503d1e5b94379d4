// Paced queue: a block queue that asks no more of its disk than it may.
//
// A disk at full rate takes time from the cores that compute. Who would rather have that time back gives the
// tier `read=` and `write=` limits. Each direction is a lane of time: a request reserves what its bytes take
// at the limit and is handed to the disk when its turn has come, so that nothing is asked in bursts.
#pragma once

#include <memory>

#include "base/clock.hpp"
#include "terrace/tier.hpp"

namespace terrace {

/// When the requests of one direction may start. A plain value.
class PaceLane {
 public:
  /// Zero: there is no limit.
  explicit PaceLane(BytesPerSecond limit) : limit_(limit) {}
  /// Reserves the next turn, which is at `now` or later.
  Clock::Time reserve(Bytes bytes, Clock::Time now);

 private:
  BytesPerSecond limit_;
  Clock::Time free_at_ = Clock::Time::min();
};

struct PaceLimits {
  BytesPerSecond read, write;  ///< zero: none
  bool any() const { return read.value > 0 || write.value > 0; }
};

/// Keeps the contract of the queue it is given. Throws EnvironmentError where the system starts no thread.
std::unique_ptr<BlockQueue> pace(std::unique_ptr<BlockQueue> queue, PaceLimits limits);

}  // namespace terrace

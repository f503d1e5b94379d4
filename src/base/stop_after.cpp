#include "base/stop_after.hpp"

#include <algorithm>

namespace terrace {
namespace {

/// A clock's counter has no room for all that a user may ask for.
constexpr Seconds kMost{1e6};

}  // namespace

StopAfter::StopAfter(Seconds time)
    : waits_([this, time](const std::stop_token& gone) {
        std::unique_lock lock(mutex_);
        wakes_.wait_for(lock, gone, std::min(time, kMost), [] { return false; });
        if (!gone.stop_requested()) source_.request_stop();
      }) {}

}  // namespace terrace

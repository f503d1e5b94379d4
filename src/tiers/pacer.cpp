// SPDX-License-Identifier: Apache-2.0
#include "tiers/pacer.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace terrace {
namespace {

constexpr Bytes kPiece{1u << 20};
// The system cannot sleep for much less than this.
constexpr Seconds kShortestSleep{50e-6};

}  // namespace

Pacer::Pacer(BytesPerSecond read, BytesPerSecond write, Seconds latency, Clock& clock)
    : clock_(clock), origin_(clock.now()), latency_(latency), read_{read}, write_{write} {
  check(read.value > 0 && write.value > 0, "a paced direction has a positive rate");
}

// Time is counted from the pacer's start, so that a double keeps fractions of a nanosecond.
Seconds Pacer::now() const { return clock_.now() - origin_; }

void Pacer::hold(Bytes read, Bytes written, Seconds took, std::uint64_t accesses) {
  const std::uint64_t pieces = round_up(std::max(read, written), kPiece) / kPiece;
  if (pieces == 0) return;
  const auto share = static_cast<double>(pieces);
  const Seconds read_time = read / read_.rate / share, write_time = written / write_.rate / share;
  const Seconds late = begin(accesses);
  const Seconds started = now() - took - late;
  Seconds end{}, planned{};
  for (std::uint64_t i = 0; i < pieces; ++i) {
    end = reserve(read_time, write_time, started);
    planned = sleep_off(end);
  }
  oversleep(now() - planned + std::min(late, planned - end));
}

// Returns the time that earlier operations overslept and by which this one may start earlier.
Seconds Pacer::begin(std::uint64_t accesses) {
  const std::lock_guard lock(mutex_);
  owed_latency_ += latency_ * static_cast<double>(accesses);
  return std::exchange(overslept_, Seconds{0});
}

void Pacer::oversleep(Seconds time) {
  const std::lock_guard lock(mutex_);
  overslept_ = std::min(overslept_ + time, kMostLateness);
}

Seconds Pacer::Lane::reserve(Seconds time, Seconds earliest) {
  return free_at = std::max(free_at, earliest) + time;
}

// An operation that reads and writes occupies both directions for the sum of both times, because memory has
// one path to the cores.
Seconds Pacer::reserve(Seconds read, Seconds write, Seconds started) {
  const std::lock_guard lock(mutex_);
  if (write == Seconds{0}) return read_.reserve(read, started);
  if (read == Seconds{0}) return write_.reserve(write, started);
  read_.free_at = std::max(read_.free_at, write_.free_at);
  return write_.free_at = read_.reserve(read + write, started);
}

// Sleeps until `end` and for the accumulated latency; returns when it should have woken.
Seconds Pacer::sleep_off(Seconds end) {
  const Seconds time = now();
  Seconds until = std::max(end, time);
  {
    const std::lock_guard lock(mutex_);
    if (end > time || owed_latency_ >= kShortestSleep) until += std::exchange(owed_latency_, Seconds{0});
  }
  if (until > time) clock_.sleep_until(origin_ + std::chrono::ceil<Clock::Time>(until));
  return until;
}

}  // namespace terrace

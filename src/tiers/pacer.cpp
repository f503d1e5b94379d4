#include "tiers/pacer.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace terrace {
namespace {

constexpr Bytes kPiece{1u << 20};
// Shorter sleeps take about this long anyway.
constexpr Seconds kShortestSleep{50e-6};

}  // namespace

Pacer::Pacer(BytesPerSecond read, BytesPerSecond write, Seconds latency, Clock& clock)
    : clock_(clock), origin_(clock.now()), latency_(latency), read_{read}, write_{write} {
  check(read.value > 0 && write.value > 0, "a paced direction has a positive rate");
}

// Counted from the pacer's own start, which keeps the fractions of a nanosecond.
Seconds Pacer::now() const { return clock_.now() - origin_; }

void Pacer::hold(Bytes read, Bytes written, Seconds took) {
  const std::uint64_t pieces = round_up(std::max(read, written), kPiece) / kPiece;
  if (pieces == 0) return;
  const Seconds started = now() - took;
  const auto share = static_cast<double>(pieces);
  const Seconds read_time = read / read_.rate / share, write_time = written / write_.rate / share;
  {
    const std::lock_guard lock(mutex_);
    owed_latency_ += latency_;
  }
  for (std::uint64_t i = 0; i < pieces; ++i) {
    sleep_off(reserve(read_time, write_time, std::min(started, now() - kCredit)));
  }
}

// Takes the next free time of both lanes; returns when the later one ends.
Seconds Pacer::reserve(Seconds read, Seconds write, Seconds earliest) {
  const std::lock_guard lock(mutex_);
  Seconds end = earliest;
  for (const auto& [lane, time] : {std::pair{&read_, read}, std::pair{&write_, write}}) {
    if (time == Seconds{0}) continue;
    lane->free_at = std::max(lane->free_at, earliest) + time;
    end = std::max(end, lane->free_at);
  }
  return end;
}

void Pacer::sleep_off(Seconds end) {
  const Seconds time = now();
  const Seconds until = end > time ? end + take_owed(Seconds{0}) : time + take_owed(kShortestSleep);
  if (until <= time) return;
  clock_.sleep_until(origin_ + std::chrono::ceil<Clock::Time>(until));
}

Seconds Pacer::take_owed(Seconds least) {
  const std::lock_guard lock(mutex_);
  return owed_latency_ >= least ? std::exchange(owed_latency_, Seconds{0}) : Seconds{0};
}

}  // namespace terrace

// Mover: carries bytes between tiers, now or in the background. It never decides what to move.
//
// Words: an extent is a range of one tier; a move copies one extent to another; a transfer is one or more
// moves in progress, waited for as one. Tiers are borrowed and must outlive the mover. All functions are
// thread-safe. A failed transfer leaves every source intact; its destinations are undefined. No transfer is
// ever silently short.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "terrace/bytes.hpp"
#include "terrace/tier.hpp"
#include "terrace/tier_spec.hpp"

namespace terrace {

struct Extent {
  TierId tier;
  std::uint64_t offset = 0;
  Bytes bytes;
};

/// Copies from.bytes. pre: to.bytes >= from.bytes; what `to` has beyond that may be overwritten with
/// anything, which spares a disk the reading of its last block. The extents do not overlap.
struct Move {
  Extent from, to;
};

enum class Priority { background, normal, urgent };

/// In scope means in progress: destroying it waits (an error is then dropped; wait() first to see it).
class Transfer {
 public:
  Transfer() = default;
  Transfer(Transfer&&) noexcept = default;
  Transfer& operator=(Transfer&&) noexcept;
  ~Transfer();

  bool valid() const noexcept { return state_ != nullptr; }
  /// Complete or failed. Never blocks.
  bool done() const noexcept;
  /// When that was. pre: valid(), and done() or wait() returned
  std::chrono::steady_clock::time_point ended() const noexcept;
  /// Makes the transfer urgent, helps where it can, returns when it is complete; throws EnvironmentError
  /// naming tier, path, offset and cause if it failed. May be called again.
  void wait();

  struct State;

 private:
  friend class Mover;
  explicit Transfer(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// What has gone over one link. busy = time with at least one transfer in progress on it.
struct LinkStatistics {
  Bytes bytes;                  ///< that have arrived
  std::uint64_t transfers = 0;  ///< that completed
  std::uint64_t failures = 0;   ///< transfers that ended without completing
  Seconds busy{0};
  BytesPerSecond bandwidth() const { return busy.count() > 0 ? bytes / busy : BytesPerSecond{}; }
};

/// Threads that should copy memory: as many as the tier that asks for most in its spec (`threads=`), else
/// two.
unsigned copy_helpers(const std::vector<Tier*>& tiers);

struct MoverOptions {
  unsigned helpers = 2;     ///< threads that copy memory; 0 = whoever waits does the work
  Bytes chunk{1u << 20};    ///< memory is copied in chunks of this, so that urgent work can overtake
  Bytes bounce{32u << 20};  ///< memory for unaligned and tier-to-tier disk traffic, over all tiers; at least
                            ///< four blocks (4 KiB or larger) and one more for each block tier
  /// For tests: called by a helper with its number before it takes a chunk; throwing ends that helper.
  std::function<void(unsigned)> before_chunk = {};
  /// A rehearsal: every move is complete at once and counted, and nothing is carried. Tiers need no memory
  /// then, so that what would be moved can be known without having it.
  bool rehearsal = false;
};

class Mover {
 public:
  explicit Mover(std::vector<Tier*> tiers, MoverOptions options = {});
  ~Mover();  ///< waits for everything started

  /// Starts moving in the background and returns at once. Moves whose extents are neighbours on a disk travel
  /// as one request. A transfer may mix links.
  Transfer start(std::vector<Move> moves, Priority priority = Priority::background);
  /// Moves now: start(moves, urgent).wait().
  void move(std::vector<Move> moves);

  LinkStatistics statistics(TierId from, TierId to) const;
  /// Memory this mover holds beyond the tiers.
  Bytes bounce_bytes() const noexcept;
  /// Helper threads still alive.
  unsigned helpers() const noexcept;
  /// Whether nothing is carried.
  bool rehearsal() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace terrace

// A Mover carries bytes between tiers, synchronously or in the background. It never decides what to move.
//
// Vocabulary: an extent is a range of one tier; a move copies one extent to another; a transfer is one or
// more moves in progress that are waited for together. Tiers are borrowed and must outlive the mover. All
// functions are thread-safe. A failed transfer leaves every source intact; its destinations are undefined. A
// transfer either moves all of its bytes or fails.
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

/// Copies from.bytes. The rest of `to`, if it is longer, may be overwritten with anything, so that a disk
/// need not read its last block first. pre: to.bytes >= from.bytes, and the extents do not overlap
struct Move {
  Extent from, to;
};

enum class Priority { background, normal, urgent };

/// A Transfer is in progress while it is in scope: its destructor waits and drops any error, so call wait()
/// first to see it.
class Transfer {
 public:
  Transfer() = default;
  Transfer(Transfer&&) noexcept = default;
  Transfer& operator=(Transfer&&) noexcept;
  ~Transfer();

  bool valid() const noexcept { return state_ != nullptr; }
  /// Returns whether the transfer has completed or failed. It never blocks.
  bool done() const noexcept;
  /// Returns when the transfer completed or failed. pre: valid(), and done() returned true or wait() returned
  std::chrono::steady_clock::time_point ended() const noexcept;
  /// Makes the transfer urgent, helps to copy where it can, and returns when the transfer is complete. Throws
  /// EnvironmentError, naming tier, path, offset and cause, if it failed. It may be called again.
  void wait();

  struct State;

 private:
  friend class Mover;
  explicit Transfer(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// The traffic of one link so far. `busy` is the time with at least one transfer in progress on it.
struct LinkStatistics {
  Bytes bytes;                  ///< bytes that have arrived
  std::uint64_t transfers = 0;  ///< transfers that completed
  std::uint64_t failures = 0;   ///< transfers that ended without completing
  Seconds busy{0};
  BytesPerSecond bandwidth() const { return busy.count() > 0 ? bytes / busy : BytesPerSecond{}; }
};

/// Returns how many threads should copy memory: the largest `threads=` in the tiers' specs, or two where none
/// has it.
unsigned copy_helpers(const std::vector<Tier*>& tiers);

struct MoverOptions {
  unsigned helpers = 2;   ///< threads that copy memory; with 0, the waiting thread does the work
  Bytes chunk{1u << 20};  ///< memory is copied in chunks of this size, so that urgent transfers can overtake
  Bytes bounce{32u << 20};  ///< buffers for unaligned and disk-to-disk traffic, for all tiers; at least
                            ///< four blocks (4 KiB or larger) and one more for each block tier
  /// For tests: a helper calls this with its number before it takes a chunk; an exception ends that helper.
  std::function<void(unsigned)> before_chunk = {};
  /// In a rehearsal every move is counted and completes at once without copying. Tiers then need no memory,
  /// so that the traffic of a policy can be recorded on any computer.
  bool rehearsal = false;
};

class Mover {
 public:
  explicit Mover(std::vector<Tier*> tiers, MoverOptions options = {});
  ~Mover();  ///< waits for every transfer that was started

  /// Starts a transfer in the background and returns at once. Moves whose extents are adjacent on a disk are
  /// merged into one request. A transfer may use several links.
  Transfer start(std::vector<Move> moves, Priority priority = Priority::background);
  /// Moves synchronously: start(moves, urgent).wait().
  void move(std::vector<Move> moves);

  LinkStatistics statistics(TierId from, TierId to) const;
  /// Returns the size of the buffers that this mover holds beyond the tiers.
  Bytes bounce_bytes() const noexcept;
  /// Returns how many helper threads are alive.
  unsigned helpers() const noexcept;
  /// Returns whether moves are only counted.
  bool rehearsal() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace terrace

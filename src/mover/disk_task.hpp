// A DiskTask is a set of moves between memory and one block tier in one direction, cut into units that a disk
// accepts.
//
// A unit is a run of whole blocks that travels in one of three ways:
//   direct   between the disk and the memory itself
//   bounced  through a buffer: the memory is not aligned, or not all bytes of the blocks are the move's
//   partial  one block of which a write changes only some bytes: read, changed, written back
// Only the thread of the block tier uses it, except where stated.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mover/ticket.hpp"

namespace terrace {

/// `room` >= bytes: this much of the destination may be overwritten, with anything beyond `bytes`.
struct DiskMove {
  std::byte* memory = nullptr;
  std::uint64_t offset = 0;  ///< on the disk
  std::uint64_t bytes = 0;
  std::uint64_t room = 0;
};

struct DiskUnit {
  enum class Way { direct, bounced, partial };
  Way way = Way::direct;
  std::uint64_t offset = 0;  ///< of the first block
  std::uint64_t bytes = 0;   ///< whole blocks
  std::byte* memory = nullptr;
  std::uint64_t skip = 0;     ///< from the beginning of the first block to the move's first byte
  std::uint64_t payload = 0;  ///< the move's bytes
};

/// The alignment and limits that a block tier requires of requests.
struct DiskRules {
  std::uint64_t block = 0;
  std::uint64_t alignment = 0;
  std::uint64_t request = 0;  ///< the most bytes of a request
  std::uint64_t buffer = 0;   ///< the most bytes a request may bounce
};

class DiskTask {
 public:
  /// `memory_tier` is paced for the bytes moved; it is nullptr if the memory belongs to no tier.
  DiskTask(Ticket& ticket, Access access, Tier* memory_tier, std::vector<DiskMove> moves)
      : ticket_(&ticket), access_(access), memory_tier_(memory_tier), moves_(std::move(moves)) {}
  virtual ~DiskTask() = default;

  Ticket& ticket() const noexcept { return *ticket_; }
  Access access() const noexcept { return access_; }
  Tier* memory_tier() const noexcept { return memory_tier_; }

  /// Called when this many bytes have arrived.
  virtual void moved(Bytes amount) noexcept = 0;
  /// Called when the task has ended and none of its requests is in flight. `complete` unless its ticket
  /// failed.
  virtual void finished(bool complete) noexcept = 0;

  /// Sorts the moves by offset on the disk, so that adjacent ones can be merged. pre: no unit was taken yet
  void sort();
  bool exhausted() const noexcept { return next_ == moves_.size(); }
  /// Returns the next unit, of at most `request_left` bytes, and at most `buffer_left` if it is bounced;
  /// nothing where not even one block fits. pre: !exhausted()
  std::optional<DiskUnit> peek(const DiskRules& rules, std::uint64_t request_left,
                               std::uint64_t buffer_left) const;
  /// Advances past this unit.
  void take(const DiskUnit& unit);

  // The block engine's bookkeeping.
  unsigned in_flight = 0;
  bool listed = false;
  bool incomplete = false;

 private:
  std::optional<DiskUnit> peek_read(const DiskRules& rules, const DiskMove& rest, std::uint64_t request_left,
                                    std::uint64_t buffer_left) const;
  std::optional<DiskUnit> peek_write(const DiskRules& rules, const DiskMove& rest, std::uint64_t request_left,
                                     std::uint64_t buffer_left) const;

  Ticket* ticket_;
  Access access_;
  Tier* memory_tier_;
  std::vector<DiskMove> moves_;
  std::size_t next_ = 0;
  std::uint64_t position_ = 0;  // inside moves_[next_]
};

}  // namespace terrace

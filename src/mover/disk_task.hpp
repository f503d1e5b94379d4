// DiskTask: moves between memory and one block tier, in one direction, cut into units a disk accepts.
//
// A unit is a run of whole blocks that travels in one of three ways:
//   direct   between the disk and the memory itself
//   bounced  through a buffer: the memory is not aligned, or not all bytes of the blocks are the move's
//   partial  one block of which a write changes only some bytes: read, changed, written back
// Used by the thread of the block tier alone, except where said.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mover/ticket.hpp"

namespace terrace {

/// `room` >= bytes: as much of the destination may be overwritten, with anything behind `bytes`.
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
  std::uint64_t skip = 0;     ///< from the first block's begin to the move's first byte
  std::uint64_t payload = 0;  ///< the move's bytes
};

/// What a block tier asks of requests.
struct DiskRules {
  std::uint64_t block = 0;
  std::uint64_t alignment = 0;
  std::uint64_t request = 0;  ///< the most bytes of a request
  std::uint64_t buffer = 0;   ///< the most bytes a request may bounce
};

class DiskTask {
 public:
  /// `memory_tier` is paced for the bytes moved; nullptr if the memory is none of a tier's.
  DiskTask(Ticket& ticket, Access access, Tier* memory_tier, std::vector<DiskMove> moves)
      : ticket_(&ticket), access_(access), memory_tier_(memory_tier), moves_(std::move(moves)) {}
  virtual ~DiskTask() = default;

  Ticket& ticket() const noexcept { return *ticket_; }
  Access access() const noexcept { return access_; }
  Tier* memory_tier() const noexcept { return memory_tier_; }

  /// So many bytes have arrived.
  virtual void moved(Bytes amount) noexcept = 0;
  /// The task has ended: nothing of it is in flight. `complete` unless its ticket failed.
  virtual void finished(bool complete) noexcept = 0;

  /// Puts neighbours on the disk side by side. Before the first unit.
  void sort();
  bool exhausted() const noexcept { return next_ == moves_.size(); }
  /// The next unit, of at most `request_left` bytes, and `buffer_left` if it is bounced; none where not even
  /// one block fits. pre: !exhausted()
  std::optional<DiskUnit> peek(const DiskRules& rules, std::uint64_t request_left,
                               std::uint64_t buffer_left) const;
  /// Goes on behind this unit.
  void take(const DiskUnit& unit);

  // The bookkeeping of the block engine.
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

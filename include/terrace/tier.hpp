// SPDX-License-Identifier: Apache-2.0
// A Tier is real memory behind a description. It holds bytes; a heap carves it and a mover fills it.
//
// A tier is one of three shapes:
//   addressable  memory() points at `capacity` bytes that kernels may use in place
//   block        blocks() takes aligned requests and completes them later (a disk)
//   device       device() says on which device its bytes lie, and where (a GPU)
// One manager, or whoever uses a mover, owns a tier through unique_ptr. Opening reserves the whole capacity,
// so that a full disk or a refused allocation is met before the run; closing releases everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "terrace/bytes.hpp"
#include "terrace/device.hpp"
#include "terrace/result.hpp"
#include "terrace/tier_spec.hpp"

namespace terrace {

enum class Access { read, write };

/// A contiguous range of memory that takes part in a request.
struct Piece {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
};

/// A request transfers one contiguous range of a block tier from (gather) or to (scatter) several pieces of
/// memory. pre: `offset` and the sum of the pieces are multiples of block_size(); every piece's address is a
/// multiple of memory_alignment() and its length of block_size().
struct BlockRequest {
  Access access = Access::read;
  std::uint64_t offset = 0;
  std::span<const Piece> pieces;  ///< must stay valid until the completion is seen
  std::uint64_t tag = 0;          ///< the completion carries the same tag
};

struct BlockCompletion {
  std::uint64_t tag = 0;
  std::int64_t result = 0;  ///< bytes transferred, possibly fewer than requested, or -errno
};

/// The queue of a block tier. One thread submits and waits; wake(), register_memory() and forget_memory() may
/// be called by any thread.
class BlockQueue {
 public:
  virtual ~BlockQueue() = default;

  virtual Bytes block_size() const noexcept = 0;        ///< a power of two
  virtual Bytes memory_alignment() const noexcept = 0;  ///< a power of two, not above block_size()
  virtual Bytes request_size() const noexcept = 0;      ///< larger requests gain no bandwidth
  virtual unsigned depth() const noexcept = 0;          ///< the most requests in flight

  /// Registers memory that requests will often use. Returns whether such requests became cheaper.
  virtual bool register_memory(std::span<std::byte> memory) = 0;
  /// Undoes the registration. It must precede unmapping the memory, because requests would otherwise still
  /// reach the old pages. pre: no request in flight uses it.
  virtual void forget_memory(std::span<std::byte>) {}
  /// Starts a request; failures are reported as completions. pre: fewer than depth() are in flight
  virtual void submit(const BlockRequest& request) = 0;
  /// Starts them all, which some queues do at the price of one. pre: as for each of them
  virtual void submit_all(std::span<const BlockRequest> requests) {
    for (const BlockRequest& request : requests) submit(request);
  }
  /// Blocks until there is a completion or a wake. Returns how many of `completions` were filled, which is 0
  /// only after wake().
  virtual std::size_t wait(std::span<BlockCompletion> completions) = 0;
  /// The same for a caller who has no use for fewer than `least`: some queues let it sleep until then. Fewer
  /// may come all the same. pre: 1 <= least <= completions.size(), and as many are in flight
  virtual std::size_t wait_for(std::span<BlockCompletion> completions, std::size_t /*least*/) {
    return wait(completions);
  }
  /// Makes the current or the next wait() return. Thread-safe.
  virtual void wake() = 0;
};

class Tier {
 public:
  virtual ~Tier() = default;

  virtual const TierDescription& description() const noexcept = 0;

  // A tier returns exactly one of these three.
  /// Returns the tier's bytes, or nullptr.
  virtual std::byte* memory() noexcept { return nullptr; }
  /// Returns the tier's queue, or nullptr.
  virtual BlockQueue* blocks() noexcept { return nullptr; }
  /// Returns one more queue to the same bytes, for one more thread that submits and waits by itself; nullptr
  /// where the tier has no queue. Limits on the rate of a disk hold for all its queues together. The tier
  /// outlives it. Throws EnvironmentError where the system has no more.
  virtual std::unique_ptr<BlockQueue> lane() { return nullptr; }
  /// Returns where the tier's bytes lie on a device, or nullptr.
  virtual const DeviceMemory* device() noexcept { return nullptr; }

  /// Returns whether the bytes belong to somebody else (borrowed.hpp): they come and go while the tier stays.
  virtual bool borrowed() const noexcept { return false; }

  /// A mover calls this after it copied `amount` out of (read) or into (write) this addressable tier during
  /// the last `took`. It blocks the caller until a device of the declared rates would have finished, and
  /// throws EnvironmentError where that device would fail.
  virtual void pace(Access access, Bytes amount, Seconds took);
  /// Charges a kernel that ran for `took` and touched bytes of this tier in place: the caller is blocked for
  /// the time that the declared rates would have needed beyond that. `accesses` waited for one another, and
  /// each owes the declared latency: a kernel that streams has one, a walk along links one for each step.
  virtual void charge(Bytes read, Bytes written, Seconds took, std::uint64_t accesses = 1);
};

/// Opens the tier a spec asks for. A wrong request (zero capacity, a directory as path, more than the disk
/// has, a node that does not exist) is a returned Error; memory or I/O that fails on the way throws
/// EnvironmentError.
Result<std::unique_ptr<Tier>> open_tier(const TierSpec& spec);
Result<std::unique_ptr<Tier>> open_tier(std::string_view spec);

}  // namespace terrace

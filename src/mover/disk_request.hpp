// A DiskRequest is one request to a block tier: the units it gathers and the bytes that are still missing.
//
// Only the thread of the block tier uses it. It is reused, so that its vectors keep their memory.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "mover/buffer_pool.hpp"
#include "mover/disk_task.hpp"

namespace terrace {

class DiskRequest {
 public:
  /// Gathers adjacent units of the task. Returns false, with nothing taken, if the first needs a buffer and
  /// none is free; the queue is woken when one is. pre: the next unit is not partial, and this request is
  /// idle
  bool gather(const std::shared_ptr<DiskTask>& task, const DiskRules& rules, BufferPool& pool,
              BlockQueue& queue);
  /// Begins a partial write by reading the block into `scratch`. pre: the next unit is partial, and this
  /// request is idle
  void begin_partial(const std::shared_ptr<DiskTask>& task, const DiskUnit& unit, std::byte* scratch);
  /// Puts the move's bytes into the block that begin_partial() has read, so that it can be written.
  void change_block();

  /// Returns a request for the bytes that are still missing.
  BlockRequest remainder(std::uint64_t tag) const;
  /// Records that this many bytes, in whole blocks, are done. Returns whether all are.
  bool advance(std::uint64_t bytes);
  /// Copies what was read into a buffer to its destinations in memory.
  void scatter() const;
  /// Releases task and buffer.
  void reset(BufferPool& pool);
  /// Releases the task but not the buffer, because the lost device may still write into it.
  void forget() noexcept { task_.reset(); }

  const std::shared_ptr<DiskTask>& task() const noexcept { return task_; }
  Access access() const noexcept { return access_; }
  std::uint64_t offset() const noexcept { return offset_; }
  std::uint64_t payload() const noexcept { return payload_; }
  /// Returns the first byte of memory of the request.
  const std::byte* memory() const noexcept { return units_.front().memory; }
  bool partial() const noexcept { return units_.front().way == DiskUnit::Way::partial; }

 private:
  void append(const DiskUnit& unit);
  void append_piece(std::byte* memory, std::uint64_t bytes);

  std::shared_ptr<DiskTask> task_;
  Access access_ = Access::read;
  std::uint64_t offset_ = 0;  // of the bytes that are still missing
  std::uint64_t payload_ = 0;
  std::vector<DiskUnit> units_;
  std::vector<Piece> pieces_;
  std::size_t first_piece_ = 0;  // the first piece that is not complete
  std::byte* buffer_ = nullptr;
  std::uint64_t bounced_ = 0;  // bytes of the buffer in use
};

}  // namespace terrace

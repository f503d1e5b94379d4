// DiskRequest: one request of a block tier, from the units it gathers to the bytes still missing.
//
// Used by the thread of the block tier alone. Reused: its vectors keep their memory.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "mover/buffer_pool.hpp"
#include "mover/disk_task.hpp"

namespace terrace {

class DiskRequest {
 public:
  /// Gathers neighbouring units of the task. Returns false, with nothing taken, if the first needs a buffer
  /// and none is free: the queue is woken when one is. pre: the next unit is not partial; idle
  bool gather(const std::shared_ptr<DiskTask>& task, const DiskRules& rules, BufferPool& pool,
              BlockQueue& queue);
  /// Begins to change one block by way of `scratch`: reads it. pre: the next unit is partial; idle
  void begin_partial(const std::shared_ptr<DiskTask>& task, const DiskUnit& unit, std::byte* scratch);
  /// The block of begin_partial() has been read: puts the move's bytes in, to be written.
  void change_block();

  /// What is still missing, as a request.
  BlockRequest remainder(std::uint64_t tag) const;
  /// So many bytes, whole blocks, are done. Returns whether all are.
  bool advance(std::uint64_t bytes);
  /// Gives what was read through a buffer to whom it belongs.
  void scatter() const;
  /// Lets go of task and buffer.
  void reset(BufferPool& pool);
  /// Lets go of the task alone: the device is lost and may still write into the buffer.
  void forget() noexcept { task_.reset(); }

  const std::shared_ptr<DiskTask>& task() const noexcept { return task_; }
  Access access() const noexcept { return access_; }
  std::uint64_t offset() const noexcept { return offset_; }
  std::uint64_t payload() const noexcept { return payload_; }
  /// The first byte of memory that takes part.
  const std::byte* memory() const noexcept { return units_.front().memory; }
  bool partial() const noexcept { return units_.front().way == DiskUnit::Way::partial; }

 private:
  void append(const DiskUnit& unit);
  void append_piece(std::byte* memory, std::uint64_t bytes);

  std::shared_ptr<DiskTask> task_;
  Access access_ = Access::read;
  std::uint64_t offset_ = 0;  // of what is still missing
  std::uint64_t payload_ = 0;
  std::vector<DiskUnit> units_;
  std::vector<Piece> pieces_;
  std::size_t first_piece_ = 0;  // that is still missing
  std::byte* buffer_ = nullptr;
  std::uint64_t bounced_ = 0;  // bytes of the buffer in use
};

}  // namespace terrace

#include "mover/disk_request.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace terrace {
namespace {

using Way = DiskUnit::Way;
constexpr std::size_t kMostPieces = 64;

}  // namespace

bool DiskRequest::gather(const std::shared_ptr<DiskTask>& task, const DiskRules& rules, BufferPool& pool,
                         BlockQueue& queue) {
  access_ = task->access();
  std::uint64_t total = 0;
  while (!task->exhausted() && pieces_.size() < kMostPieces) {
    const auto unit = task->peek(rules, rules.request - total, rules.buffer - bounced_);
    if (!unit || unit->way == Way::partial) break;
    if (total == 0) offset_ = unit->offset;
    if (unit->offset != offset_ + total) break;
    if (unit->way == Way::bounced && buffer_ == nullptr) {
      buffer_ = pool.acquire(queue);
      if (buffer_ == nullptr) break;
    }
    append(*unit);
    task->take(*unit);
    total += unit->bytes;
  }
  if (total > 0) task_ = task;
  return total > 0;
}

void DiskRequest::append(const DiskUnit& unit) {
  units_.push_back(unit);
  payload_ += unit.payload;
  if (unit.way == Way::direct) return append_piece(unit.memory, unit.bytes);
  std::byte* bounce = buffer_ + bounced_;
  if (access_ == Access::write) {
    std::memcpy(bounce, unit.memory, unit.payload);
    std::memset(bounce + unit.payload, 0, unit.bytes - unit.payload);
  }
  append_piece(bounce, unit.bytes);
  bounced_ += unit.bytes;
}

void DiskRequest::append_piece(std::byte* memory, std::uint64_t bytes) {
  if (!pieces_.empty() && pieces_.back().memory + pieces_.back().bytes == memory) {
    pieces_.back().bytes += bytes;
  } else {
    pieces_.push_back({memory, bytes});
  }
}

void DiskRequest::begin_partial(const std::shared_ptr<DiskTask>& task, const DiskUnit& unit,
                                std::byte* scratch) {
  units_.push_back(unit);
  pieces_.push_back({scratch, unit.bytes});
  task->take(unit);
  task_ = task;
  access_ = Access::read;
  offset_ = unit.offset;
  payload_ = unit.payload;
}

void DiskRequest::change_block() {
  const DiskUnit& unit = units_.front();
  pieces_.front().memory -= unit.bytes - pieces_.front().bytes;  // back to the beginning of the scratch block
  pieces_.front().bytes = unit.bytes;
  first_piece_ = 0;
  std::memcpy(pieces_.front().memory + unit.skip, unit.memory, unit.payload);
  access_ = Access::write;
  offset_ = unit.offset;
}

BlockRequest DiskRequest::remainder(std::uint64_t tag) const {
  return {access_, offset_, std::span(pieces_).subspan(first_piece_), tag};
}

bool DiskRequest::advance(std::uint64_t bytes) {
  offset_ += bytes;
  while (bytes > 0 && first_piece_ < pieces_.size()) {
    Piece& piece = pieces_[first_piece_];
    const std::uint64_t part = std::min<std::uint64_t>(bytes, piece.bytes);
    piece.memory += part;
    piece.bytes -= part;
    bytes -= part;
    if (piece.bytes == 0) ++first_piece_;
  }
  return first_piece_ == pieces_.size();
}

void DiskRequest::scatter() const {
  if (access_ == Access::write) return;
  const std::byte* bounce = buffer_;
  for (const DiskUnit& unit : units_) {
    if (unit.way == Way::direct) continue;
    std::memcpy(unit.memory, bounce + unit.skip, unit.payload);
    bounce += unit.bytes;
  }
}

void DiskRequest::reset(BufferPool& pool) {
  if (buffer_ != nullptr) pool.release(std::exchange(buffer_, nullptr));
  task_.reset();
  payload_ = 0;
  bounced_ = 0;
  first_piece_ = 0;
  units_.clear();
  pieces_.clear();
}

}  // namespace terrace

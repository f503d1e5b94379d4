#include "mover/disk_task.hpp"

#include <algorithm>

namespace terrace {
namespace {

using Way = DiskUnit::Way;

std::uint64_t down(std::uint64_t size, std::uint64_t unit) { return size - size % unit; }
std::uint64_t up(std::uint64_t size, std::uint64_t unit) { return down(size + unit - 1, unit); }

bool aligned(const std::byte* memory, const DiskRules& rules) {
  return reinterpret_cast<std::uintptr_t>(memory) % rules.alignment == 0;
}

std::optional<DiskUnit> unless_empty(const DiskUnit& unit) {
  if (unit.bytes == 0) return std::nullopt;
  return unit;
}

}  // namespace

void DiskTask::sort() {
  std::stable_sort(moves_.begin(), moves_.end(),
                   [](const DiskMove& a, const DiskMove& b) { return a.offset < b.offset; });
}

std::optional<DiskUnit> DiskTask::peek(const DiskRules& rules, std::uint64_t request_left,
                                       std::uint64_t buffer_left) const {
  const DiskMove& move = moves_[next_];
  const DiskMove rest{move.memory + position_, move.offset + position_, move.bytes - position_,
                      move.room - position_};
  return access_ == Access::read ? peek_read(rules, rest, request_left, buffer_left)
                                 : peek_write(rules, rest, request_left, buffer_left);
}

std::optional<DiskUnit> DiskTask::peek_read(const DiskRules& rules, const DiskMove& rest,
                                            std::uint64_t request_left, std::uint64_t buffer_left) const {
  const std::uint64_t block = rules.block;
  const std::uint64_t skip = rest.offset % block;
  const std::uint64_t padded = up(rest.bytes, block);
  const std::uint64_t whole = padded <= rest.room ? padded : down(rest.bytes, block);
  if (skip == 0 && whole > 0 && aligned(rest.memory, rules)) {
    const std::uint64_t bytes = std::min(whole, down(request_left, block));
    return unless_empty({Way::direct, rest.offset, bytes, rest.memory, 0, std::min(bytes, rest.bytes)});
  }
  const std::uint64_t most = down(std::min(request_left, buffer_left), block);
  if (most == 0) return std::nullopt;
  std::uint64_t payload = std::min(rest.bytes, most - skip);
  // Where the memory is aligned from the next block on, only the first block needs a bounce buffer.
  if (skip > 0 && aligned(rest.memory + (block - skip), rules)) payload = std::min(payload, block - skip);
  return DiskUnit{Way::bounced, rest.offset - skip, up(skip + payload, block), rest.memory, skip, payload};
}

std::optional<DiskUnit> DiskTask::peek_write(const DiskRules& rules, const DiskMove& rest,
                                             std::uint64_t request_left, std::uint64_t buffer_left) const {
  const std::uint64_t block = rules.block;
  const std::uint64_t skip = rest.offset % block;
  const std::uint64_t whole = down(rest.bytes, block);
  const bool may_pad = up(rest.bytes, block) <= rest.room;
  if (skip > 0 || (whole == 0 && !may_pad)) {
    const std::uint64_t payload = std::min(rest.bytes, block - skip);
    return DiskUnit{Way::partial, rest.offset - skip, block, rest.memory, skip, payload};
  }
  if (whole > 0 && aligned(rest.memory, rules)) {
    const std::uint64_t bytes = std::min(whole, down(request_left, block));
    return unless_empty({Way::direct, rest.offset, bytes, rest.memory, 0, bytes});
  }
  const std::uint64_t most = down(std::min(request_left, buffer_left), block);
  const std::uint64_t bytes = std::min(may_pad ? up(rest.bytes, block) : whole, most);
  return unless_empty({Way::bounced, rest.offset, bytes, rest.memory, 0, std::min(bytes, rest.bytes)});
}

void DiskTask::take(const DiskUnit& unit) {
  position_ += unit.payload;
  if (position_ < moves_[next_].bytes) return;
  ++next_;
  position_ = 0;
}

}  // namespace terrace

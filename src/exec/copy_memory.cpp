// SPDX-License-Identifier: Apache-2.0
#include "exec/copy_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "terrace/error.hpp"

namespace terrace {
namespace {

constexpr Bytes kGranularity{64};

}  // namespace

CopyMemory::CopyMemory(std::span<std::byte> lent, std::function<Bytes()> available)
    : lent_(lent),
      heap_(round_down(Bytes{lent.size()}, kGranularity), kGranularity),
      available_(std::move(available)) {}

CopyMemory::Room CopyMemory::take(Bytes size) {
  Room room;
  if (const auto slot = heap_.allocate(size)) {
    room.slot_ = *slot;
    room.bytes_ = lent_.subspan(heap_.offset(*slot), size.count);
  } else {
    if (const Bytes left = available_(); size > left) {
      throw EnvironmentError(
          fmt::format("a copy of {} is to wait in memory beside the tiers, where {} are left: end other "
                      "programs, or give the run more fast memory",
                      readable(size), readable(left)),
          {"", "", 0, ENOMEM});
    }
    room.own_ = std::make_unique<std::byte[]>(size.count);
    room.bytes_ = {room.own_.get(), size.count};
    held_ += size;
    most_held_ = std::max(most_held_, held_);
  }
  room.of_ = this;
  return room;
}

void CopyMemory::Room::swap(Room& other) noexcept {
  std::swap(of_, other.of_);
  std::swap(bytes_, other.bytes_);
  std::swap(slot_, other.slot_);
  std::swap(own_, other.own_);
}

void CopyMemory::Room::give_back() noexcept {
  if (of_ == nullptr) return;
  if (own_ != nullptr) {
    of_->held_ -= Bytes{bytes_.size()};
  } else {
    of_->heap_.free(slot_);
  }
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// A RoomReserve says how much fast memory evictions keep free, so that faults rarely wait for one.
//
// What is free is of use to nobody, and where memory is short every page of it is a fault that need not be:
// so the reserve covers what comes while an eviction makes room, and no more. A sweep fills memory at the
// rate of the disk and needs a large one; single pages come at a hundredth of that. It is plain data without
// a clock; the service's lock guards it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace terrace::pages {

class RoomReserve {
 public:
  /// In pages.
  RoomReserve(std::uint64_t least, std::uint64_t most) : least_(least), most_(most), pages_(least) {}

  std::uint64_t pages() const { return pages_; }
  std::uint64_t most() const { return most_; }

  /// So many pages have come in all, of which those since the last tick say how many to expect. The reserve
  /// grows at once and shrinks slowly.
  void tick(std::uint64_t came) {
    const std::uint64_t fresh = came - std::min(came, came_);
    came_ = came;
    pages_ = std::clamp(std::max(kTicks * fresh, pages_ - pages_ / 8), least_, most_);
  }

 private:
  static constexpr std::uint64_t kTicks = 1;  // that an eviction may take

  std::uint64_t least_, most_, pages_, came_ = 0;
};

}  // namespace terrace::pages

// SPDX-License-Identifier: Apache-2.0
// A SlotTable gives out the slots of one slower tier, neighbouring ones where it can, so that parts that
// leave together are written and read back by one request.
//
// A forked child reads its parent's slots as they were at the fork. So hold() keeps every slot that is in
// use, and every one that is taken until stop_holding(), from being given out again before let_go(). The
// pager's lock guards the table.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pages/reserved.hpp"

namespace terrace::pages {

/// Names a slot of one of the slower tiers.
enum class Slot : std::uint32_t {};
inline constexpr Slot kNoSlot{0xFFFFFFFF};

constexpr unsigned kSlotIndexBits = 29;
constexpr std::size_t kMostTiers = std::size_t{1} << (32 - kSlotIndexBits);  // as many as a Slot can name
constexpr Slot make_slot(unsigned tier, std::uint32_t index) { return Slot{tier << kSlotIndexBits | index}; }
constexpr unsigned tier_of(Slot slot) { return static_cast<std::uint32_t>(slot) >> kSlotIndexBits; }
constexpr std::uint32_t index_of(Slot slot) {
  return static_cast<std::uint32_t>(slot) & ((1U << kSlotIndexBits) - 1);
}

class SlotTable {
 public:
  explicit SlotTable(std::uint32_t count);

  std::uint32_t used() const { return used_count_; }
  std::uint32_t size() const { return count_; }

  struct Run {
    std::uint32_t first = 0, count = 0;
  };
  /// Takes up to `wanted` neighbouring slots; none where all are in use.
  Run take(std::uint32_t wanted);
  void give_back(std::uint32_t index);
  bool in_use(std::uint32_t index) const { return closed_ || bit(used_, index); }

  /// No slot is given out or comes back any more: the tier belongs to another process now.
  void close() { closed_ = true; }
  bool closed() const { return closed_; }
  /// Returns whether hardly any slot is left.
  bool nearly_full() const { return !closed_ && count_ - used_count_ < count_ / 16 + 1; }
  void hold();
  void stop_holding() { holding_ = false; }
  void let_go();
  bool held(std::uint32_t index) const { return closed_ || bit(held_, index); }

 private:
  static bool bit(const Reserved<std::uint64_t>& bits, std::uint32_t index) {
    return bits[index / 64] >> index % 64 & 1;
  }
  bool available(std::uint32_t index) const { return !bit(used_, index) && !bit(held_, index); }
  Run run_at(std::uint32_t first, std::uint32_t wanted);

  std::uint32_t count_;
  Reserved<std::uint64_t> used_, held_;
  std::uint32_t used_count_ = 0, cursor_ = 0;
  bool closed_ = false, holding_ = false;
};

}  // namespace terrace::pages

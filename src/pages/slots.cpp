// SPDX-License-Identifier: Apache-2.0
#include "pages/slots.hpp"

#include "base/check.hpp"

namespace terrace::pages {

SlotTable::SlotTable(std::uint32_t count)
    : count_(count),
      used_(count / 64 + 1, "the slots of a tier"),
      held_(count / 64 + 1, "the slots of a tier") {}

SlotTable::Run SlotTable::run_at(std::uint32_t first, std::uint32_t wanted) {
  Run run{first, 0};
  while (run.count < wanted && first + run.count < count_ && available(first + run.count)) {
    const std::uint64_t bit = std::uint64_t{1} << (first + run.count) % 64;
    used_[(first + run.count) / 64] |= bit;
    if (holding_) held_[(first + run.count) / 64] |= bit;
    ++run.count;
  }
  used_count_ += run.count;
  cursor_ = first + run.count;
  return run;
}

SlotTable::Run SlotTable::take(std::uint32_t wanted) {
  if (closed_) return {};
  for (std::uint32_t tried = 0; tried < count_;) {
    if (cursor_ >= count_) cursor_ = 0;
    // Whole words without a free slot are passed over at once.
    if (cursor_ % 64 == 0 && (used_[cursor_ / 64] | held_[cursor_ / 64]) == ~std::uint64_t{0}) {
      cursor_ += 64;
      tried += 64;
      continue;
    }
    if (available(cursor_)) return run_at(cursor_, wanted);
    ++cursor_;
    ++tried;
  }
  return {};
}

void SlotTable::give_back(std::uint32_t index) {
  if (closed_) return;
  check(in_use(index), "a slot is given back once");
  used_[index / 64] &= ~(std::uint64_t{1} << index % 64);
  --used_count_;
}

void SlotTable::hold() {
  holding_ = true;
  for (std::size_t i = 0; i <= count_ / 64; ++i) held_[i] |= used_[i];
}

void SlotTable::let_go() {
  for (std::size_t i = 0; i <= count_ / 64; ++i) held_[i] = 0;
}

}  // namespace terrace::pages

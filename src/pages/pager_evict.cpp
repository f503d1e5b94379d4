// SPDX-License-Identifier: Apache-2.0
// How a part leaves fast memory (pager.hpp).
#include <cerrno>

#include "pages/pager.hpp"

namespace terrace::pages {

void Pager::abandon(Batch& batch, std::size_t i) { batch.owner[i] = kNoPart; }

void Pager::detach_frame(Part& part) {
  abandon(at_.batches[part.frame / kPartsOfChunk], part.frame % kPartsOfChunk);
  part.state = PartState::idle;
  part.present = 0;
  part.frame = 0;
}

Pager::Step Pager::lift(Batch& batch) {
  const PartId id = at_.victims.next();
  if (id == kNoPart) return Step::none;
  Part& part = table_[id];
  const std::size_t i = batch.count;
  const PagesDone done =
      can_leave(part) ? at_.control.take(table_.address(id), part.present, batch.frame(i)) : PagesDone{};
  remove_resident(id, done.absent);
  if (done.pages == 0 && done.again) return Step::again;
  if (part.present == 0) {
    if (part.empty()) free_slot(part);
    return Step::full;
  }
  if (done.pages == 0) {
    at_.victims.left(id);
    at_.victims.arrived(id, crowded_);
    stuck_ = {table_.address(id), part.present};
    ++counts_.stuck;
    return Step::full;
  }
  const PageMask left_behind = without(part.present, done.pages);
  remove_resident(id, part.present);
  batch.owner[i] = id;
  batch.mask[i] = done.pages;
  batch.slot[i] = kNoSlot;
  batch.zero[i] = false;
  batch.joined[i] = false;
  batch.cause[i] = 0;
  batch.pages += count_of(done.pages);
  resident_ += count_of(done.pages);
  ++batch.count;
  part.state = left_behind == 0 ? PartState::lifted : PartState::idle;
  part.present = done.pages;
  part.frame = static_cast<std::uint16_t>(batch.number * kPartsOfChunk + i);
  if (left_behind == 0) return Step::done;
  // Some pages would not go, so the others return to them; nobody can have seen them gone but the kernel.
  part.state = PartState::lifted;
  part.dirty = true;
  stuck_ = {table_.address(id), left_behind};
  ++counts_.stuck;
  if (rescue(id) == Step::again) return Step::done;  // the next touch rescues it
  add_resident(id, left_behind);
  return Step::full;
}

/// Pages that are here join those in the slot, which must then not be a forked child's.
bool Pager::joins_slot(const Part& part) const { return without(part.stored, part.present) != 0; }
bool Pager::can_leave(const Part& part) const {
  return !joins_slot(part) || !at_.slots[tier_of(part.slot)]->held(index_of(part.slot));
}

void Pager::leave_unwritten(Batch& batch, std::size_t i) {
  Part& part = table_[batch.owner[i]];
  const PageMask pages = part.present;
  (batch.zero[i] ? counts_.evicted_zero : counts_.evicted_clean) += count_of(pages);
  detach_frame(part);
  if (batch.zero[i]) part.stored = without(part.stored, pages);
  if (part.empty()) free_slot(part);
}

void Pager::plan(Batch& batch) {
  std::uint32_t unplanned = 0;
  for (std::size_t i = 0; i < batch.count; ++i) {
    if (batch.owner[i] == kNoPart) continue;
    Part& part = table_[batch.owner[i]];
    const bool clean = !part.dirty && without(part.present, part.stored) == 0;
    if (clean || batch.zero[i]) {
      leave_unwritten(batch, i);
    } else if (!joins_slot(part)) {
      ++unplanned;
    } else if (can_leave(part)) {
      batch.slot[i] = part.slot;
      batch.joined[i] = true;
      part.state = PartState::writing;
    } else {
      batch.cause[i] = EBUSY;
    }
  }
  std::uint32_t got = 0;
  Slot slot = kNoSlot;
  for (std::size_t i = 0; i < batch.count; ++i) {
    if (batch.owner[i] == kNoPart || batch.slot[i] != kNoSlot || batch.cause[i] != 0) continue;
    if (got == 0) slot = take_slot(unplanned, got);
    if (got == 0) {
      batch.cause[i] = ENOSPC;
      continue;
    }
    batch.slot[i] = slot;
    slot = Slot{static_cast<std::uint32_t>(slot) + 1};
    --got;
    --unplanned;
    table_[batch.owner[i]].state = PartState::writing;
  }
}

Pager::Step Pager::written(Batch& batch, std::size_t i) {
  const PartId id = batch.owner[i];
  const Slot slot = batch.slot[i];
  const bool joined = id != kNoPart && slot != kNoSlot && table_[id].slot == slot;
  if (id != kNoPart && batch.cause[i] != 0 && put_back(batch, i) == Step::again) return Step::again;
  if (id != kNoPart && batch.cause[i] == 0 && slot != kNoSlot) {
    Part& part = table_[id];
    const PageMask pages = part.present;
    const PageMask others = joined ? part.stored : PageMask{0};
    if (!joined) free_slot(part);
    detach_frame(part);
    part.slot = slot;
    part.stored = static_cast<PageMask>(others | pages);
    part.dirty = false;
    counts_.evicted_dirty += count_of(pages);
  } else if (slot != kNoSlot && !batch.joined[i]) {
    at_.slots[tier_of(slot)]->give_back(index_of(slot));
  }
  batch.slot[i] = kNoSlot;
  return Step::done;
}

Pager::Step Pager::put_back(Batch& batch, std::size_t i) {
  const PartId id = batch.owner[i];
  Part& part = table_[id];
  const PagesDone done =
      at_.control.fill(table_.address(id), part.present, batch.frame(i), Protection::writable);
  if (done.again) return Step::again;
  const PageMask back = part.present;
  detach_frame(part);
  part.dirty = true;
  add_resident(id, back);
  at_.control.wake(table_.address(id));
  ++counts_.kept_for_space;
  return Step::done;
}

void Pager::released(Batch& batch) {
  resident_ -= batch.pages;
  batch.pages = 0;
  batch.count = 0;
}

}  // namespace terrace::pages

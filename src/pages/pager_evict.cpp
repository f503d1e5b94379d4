// SPDX-License-Identifier: Apache-2.0
// How a part leaves fast memory (pager.hpp).
#include <algorithm>
#include <cerrno>

#include "pages/pager.hpp"

namespace terrace::pages {

void Pager::detach_frame(Part& part) {
  Batch& batch = batch_of(part);
  batch.owner[frame_of(part)] = kNoPart;
  batch.waiting[frame_of(part)] = 0;
  part.state = PartState::idle;
  part.frame = 0;
}

Pager::Step Pager::lift(Batch& batch) {
  const PartId id = at_.victims.next();
  return id == kNoPart ? Step::none : lift(batch, id);
}

bool Pager::can_be_sampled(PartId id) const {
  return id != kNoPart && table_[id].state == PartState::idle && table_[id].present != 0 &&
         can_leave(table_[id]);
}

Pager::Step Pager::return_sample(Batch& batch, std::size_t i) {
  return batch.owner[i] == kNoPart ? Step::done : bring_all_back(batch.owner[i], Arrival::Why::stayed);
}

Pager::Step Pager::lift(Batch& batch, PartId id) {
  Part& part = table_[id];
  // Others are busy with it: more of it is being fetched, or on its way out.
  if (part.state != PartState::idle) return stay(id), Step::again;
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
    stay(id);
    stuck_ = {table_.address(id), part.present};
    ++counts_.stuck;
    return Step::full;
  }
  batch.owner[i] = id;
  batch.mask[i] = batch.waiting[i] = done.pages;
  batch.dirty[i] = static_cast<PageMask>(done.pages & to_write(part));
  batch.slot[i] = kNoSlot;
  batch.zero[i] = false;
  batch.joined[i] = false;
  batch.cause[i] = 0;
  batch.pages += count_of(done.pages);
  if (!batch.samples) staged_ += count_of(done.pages);
  remove_resident(id, done.pages);
  resident_ += count_of(done.pages);
  part.frame = static_cast<std::uint16_t>(batch.number * kPartsOfChunk + i);
  part.state = PartState::lifted;
  ++batch.count;
  if (part.present == 0) return Step::done;
  // Some pages would not go, so they stay behind.
  stuck_ = {table_.address(id), part.present};
  ++counts_.stuck;
  return stay(id), Step::done;
}

/// It cannot leave now: others are looked at first.
void Pager::stay(PartId id) {
  at_.victims.left(id);
  at_.victims.arrived(id, {Arrival::Why::stayed, crowded_, 0, limit_});
}

/// Pages that are in memory join those in the slot, which must then not be a forked child's.
bool Pager::joins_slot(const Part& part) const {
  return without(part.stored, static_cast<PageMask>(part.present | waiting(part))) != 0;
}
bool Pager::can_leave(const Part& part) const {
  return !joins_slot(part) || is_clean(part) || !is_held(part);
}
bool Pager::is_held(const Part& part) const {
  return part.slot != kNoSlot && at_.slots[tier_of(part.slot)]->held(index_of(part.slot));
}

void Pager::leave_unwritten(Batch& batch, std::size_t i) {
  Part& part = table_[batch.owner[i]];
  const PageMask pages = batch.waiting[i];
  (batch.zero[i] ? counts_.evicted_zero : counts_.evicted_clean) += count_of(pages);
  if (!batch.zero[i]) written_.left_clean(table_.address(batch.owner[i]));
  detach_frame(part);
  if (batch.zero[i]) part.stored = without(part.stored, pages);
  if (part.empty()) free_slot(part);
}

// A part that was written before goes to where it was, and new ones get slots in the order of their
// addresses, whatever the order in which they leave: so neighbours stay neighbours, and a sweep is read in
// large pieces.
void Pager::plan(Batch& batch) {
  std::array<std::uint8_t, kPartsOfChunk> order{};
  std::uint32_t unplanned = 0, count = 0;
  for (std::size_t i = 0; i < batch.count; ++i) {
    if (batch.owner[i] == kNoPart) continue;
    order[count++] = static_cast<std::uint8_t>(i);
    Part& part = table_[batch.owner[i]];
    const auto dirty = static_cast<PageMask>(batch.waiting[i] & batch.dirty[i]);
    batch.mask[i] = batch.waiting[i];
    if (dirty == 0 || batch.zero[i]) {
      leave_unwritten(batch, i);
    } else if (part.slot != kNoSlot && !is_held(part)) {
      // One request with clean pages in its middle takes less than two without them.
      batch.mask[i] = static_cast<PageMask>(batch.mask[i] & span_of(dirty));
      batch.slot[i] = part.slot;
      batch.joined[i] = true;
      part.state = PartState::writing;
    } else if (!joins_slot(part)) {
      ++unplanned;
    } else {
      batch.cause[i] = EBUSY;
    }
  }
  const auto address = [&](std::uint8_t i) {
    return batch.owner[i] == kNoPart ? Address{0} : table_.address(batch.owner[i]);
  };
  std::sort(order.begin(), order.begin() + count,
            [&](std::uint8_t a, std::uint8_t b) { return address(a) < address(b); });
  std::uint32_t got = 0;
  Slot slot = kNoSlot;
  for (std::size_t at = 0; at < count; ++at) {
    const std::size_t i = order[at];
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
    const PageMask pages = batch.waiting[i];
    const PageMask others = joined ? part.stored : PageMask{0};
    if (!joined) free_slot(part);
    detach_frame(part);
    part.slot = slot;
    part.stored = static_cast<PageMask>(others | pages);
    counts_.evicted_dirty += count_of(pages);
  } else if (slot != kNoSlot && !batch.joined[i]) {
    give_back(slot);
  }
  batch.slot[i] = kNoSlot;
  return Step::done;
}

Pager::Step Pager::put_back(Batch& batch, std::size_t i) {
  // There is no slot that has them, whatever they were before.
  batch.dirty[i] = batch.waiting[i];
  if (bring_all_back(batch.owner[i], Arrival::Why::stayed) != Step::done) return Step::again;
  ++counts_.kept_for_space;
  return Step::done;
}

/// Of a part that is partly in fast memory the rest may soon be wanted.
bool Pager::colder(PartId a, PartId b) const {
  const bool apart_a = table_[a].present == 0, apart_b = table_[b].present == 0;
  return apart_a != apart_b ? apart_a : at_.victims.hotness(a) < at_.victims.hotness(b);
}

bool Pager::begin_demotion(unsigned tier, Demotion& demotion) {
  constexpr int kCompared = 64;
  PartId coldest = kNoPart;
  for (int i = 0; i < kCompared; ++i) {
    demotion_hand_ = table_.after(demotion_hand_);
    if (demotion_hand_ == kNoPart) return false;
    const Part& part = table_[demotion_hand_];
    if (part.state != PartState::idle || part.stored == 0 || is_held(part)) continue;
    if (tier_of(part.slot) != tier) continue;
    if (coldest == kNoPart || colder(demotion_hand_, coldest)) coldest = demotion_hand_;
  }
  if (coldest == kNoPart) return false;
  std::uint32_t got = 0;
  const Slot to = take_slot(1, got, tier + 1);
  if (to == kNoSlot) return false;
  demotion = {coldest, table_[coldest].slot, to};
  table_[coldest].state = PartState::fetching;
  return true;
}

void Pager::demoted(const Demotion& demotion, int cause) {
  Part& part = table_[demotion.part];
  give_back(cause == 0 ? demotion.from : demotion.to);
  part.slot = cause == 0 ? demotion.to : demotion.from;
  part.state = PartState::idle;
  if (cause == 0) counts_.demoted += count_of(part.stored);
  // The program may have given the part up meanwhile, and somebody may wait for it.
  if (part.empty()) free_slot(part);
  at_.control.wake(table_.address(demotion.part));
}

void Pager::evict_samples(Batch& batch) {
  batch.samples = false;
  staged_ += batch.pages;
}

void Pager::released(Batch& batch) {
  resident_ -= batch.pages;
  if (!batch.samples) staged_ -= batch.pages;
  batch.samples = batch.leaving = false;
  batch.pages = 0;
  batch.count = 0;
}

}  // namespace terrace::pages

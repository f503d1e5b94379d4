// SPDX-License-Identifier: Apache-2.0
// What a change of the program's layout does (pager.hpp).
#include <algorithm>
#include <cerrno>

#include "pages/pager.hpp"

namespace terrace::pages {

void Pager::changed(const Event& event) {
  if (event.kind == Event::Kind::remapped) return remap(event.address, event.to, event.bytes);
  drop(event.address, event.address + event.bytes);
  if (event.kind != Event::Kind::unmapped) return;
  for (Address chunk = chunk_start(event.address); chunk < event.address + event.bytes; chunk += kChunk)
    table_.forget_empty(chunk);
}

void Pager::drop(Address start, Address end) {
  table_.each_part(start, end,
                   [&](PartId id) { drop_pages(id, pages_within(table_.address(id), start, end)); });
}

void Pager::drop_pages(PartId id, PageMask pages) {
  Part& part = table_[id];
  counts_.dropped += count_of(static_cast<PageMask>((part.present | part.stored | waiting(part)) & pages));
  remove_resident(id, pages);
  part.stored = without(part.stored, pages);  // what is being fetched is filled in only while it is stored
  if (is_lifted(part)) {
    PageMask& waiting = batch_of(part).waiting[frame_of(part)];
    waiting = without(waiting, pages);
    if (waiting != 0) return;
    if (part.stored == 0 && part.present == 0) leave_slot_to_frame(part);
    detach_frame(part);
  }
  if (part.empty()) free_slot(part);
}

/// The frame is being written to the part's slot, which must not become somebody else's before that is done.
void Pager::leave_slot_to_frame(Part& part) {
  Batch& batch = batch_of(part);
  const std::size_t i = frame_of(part);
  if (!batch.joined[i] || batch.slot[i] != part.slot) return;
  batch.joined[i] = false;
  part.slot = kNoSlot;
}

void Pager::remap(Address from, Address to, std::size_t bytes) {
  drop(to, to + bytes);
  const Address end = to + bytes;
  for (Address part = part_start(to); part < end; part += kPart) {
    const bool aligned = (to - from) % kPart == 0 && part >= to && part + kPart <= end;
    if (!aligned || !move_whole_part(part - to + from, part)) move_pages(part, to, end, from);
  }
  drop(from, from + bytes);
}

/// Hands the record over where nobody is busy with the part.
bool Pager::move_whole_part(Address from, Address to) {
  const PartId old_id = table_.find(from);
  if (old_id == kNoPart || table_[old_id].empty()) return true;
  const PartId id = table_.find_or_make(to);
  Part& old = table_[old_id];
  if (id == kNoPart || old.state != PartState::idle || table_[id].state != PartState::idle) return false;
  Part& part = table_[id];
  const PageMask present = old.present, dirty = old.dirty;
  remove_resident(old_id, present);
  part.stored = old.stored;
  part.slot = old.slot;
  part.heat = old.heat;
  old.slot = kNoSlot;
  old.stored = 0;
  add_resident(id, present, Arrival::Why::stayed);
  part.dirty = dirty;
  return true;
}

/// Collects the pages of the part at `to_part` from where they were, [from, ..) for [to, end). Pages that are
/// present came along with the kernel's move; what was in a frame or a slot is written to a slot of the new
/// part, or filled in where there is none.
void Pager::move_pages(Address to_part, Address to, Address end, Address from) {
  std::byte* const buffer = &scratch_[kPart];
  PageMask present = 0, collected = 0, lost = 0;
  for (std::size_t i = 0; i < kPagesOfPart; ++i) {
    const Address page = to_part + i * kPage;
    if (page < to || page >= end) continue;
    const Address source = page - to + from;
    const PartId old_id = table_.find(source);
    if (old_id == kNoPart) continue;
    const Part& old = table_[old_id];
    const auto bit = static_cast<PageMask>(1U << i);
    const PageMask old_bit = page_bit(source);
    const std::size_t offset = source % kPart;
    if (old.present & old_bit) {
      present = static_cast<PageMask>(present | bit);
      continue;
    }
    if (waiting(old) & old_bit) {
      std::copy_n(batch_of(old).frame(frame_of(old)) + offset, kPage, buffer + i * kPage);
    } else if (old.stored & old_bit) {
      const std::uint64_t place = std::uint64_t{index_of(old.slot)} * kPart + offset;
      const int cause = at_.stores[tier_of(old.slot)]->read(place, buffer + i * kPage, kPage);
      if (cause != 0) {
        lost = static_cast<PageMask>(lost | bit);
        if (loss_.cause == 0) loss_ = {cause, tier_of(old.slot), place, page};
        continue;
      }
    } else {
      continue;
    }
    collected = static_cast<PageMask>(collected | bit);
  }
  if (lost != 0) {
    counts_.lost += count_of(lost);
    at_.control.poison(to_part, lost);
  }
  if ((present | collected) == 0) return;
  const PartId id = table_.find_or_make(to_part);
  if (id == kNoPart) return;
  Part& part = table_[id];
  if (collected != 0 && !keep_in_slot(part, collected, buffer)) {
    const PagesDone done = at_.control.fill(to_part, collected, buffer, Protection::writable);
    present = static_cast<PageMask>(present | done.pages);
    const PageMask homeless = without(collected, done.pages);
    if (homeless != 0) {
      counts_.lost += count_of(homeless);
      if (loss_.cause == 0) loss_ = {ENOSPC, 0, 0, to_part};
      at_.control.poison(to_part, homeless);
    }
  }
  add_resident(id, present, Arrival::Why::stayed);
  part.dirty = static_cast<PageMask>(part.dirty | present);
}

/// Writes pages to the part's slot, to the one that its frame is about to be written to, or else to a new
/// one.
bool Pager::keep_in_slot(Part& part, PageMask pages, const std::byte* data) {
  const Slot planned = is_lifted(part) ? batch_of(part).slot[frame_of(part)] : kNoSlot;
  Slot slot = planned != kNoSlot ? planned : part.slot;
  std::uint32_t got = 0;
  const bool fresh = slot == kNoSlot;
  if (fresh) slot = take_slot(1, got);
  if (slot == kNoSlot || at_.slots[tier_of(slot)]->held(index_of(slot))) return false;
  int cause = 0;
  each_run(pages, [&](std::size_t first, std::size_t count) {
    const iovec piece{const_cast<std::byte*>(data) + first * kPage, count * kPage};
    const std::uint64_t place = std::uint64_t{index_of(slot)} * kPart + first * kPage;
    cause = at_.stores[tier_of(slot)]->write(place, {&piece, 1});
    return cause == 0;
  });
  if (cause != 0 && fresh) give_back(slot);
  if (cause != 0) return false;
  if (slot != part.slot) free_slot(part);  // what it held is in memory, or the frame would join it
  if (planned != kNoSlot) batch_of(part).joined[frame_of(part)] = true;
  part.slot = slot;
  part.stored = static_cast<PageMask>(part.stored | pages);
  return true;
}

}  // namespace terrace::pages

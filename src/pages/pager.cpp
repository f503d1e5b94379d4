// SPDX-License-Identifier: Apache-2.0
#include "pages/pager.hpp"

#include <algorithm>

namespace terrace::pages {
Pager::Pager(const Parts& parts, std::uint64_t limit_pages, Bringing bringing)
    : at_(parts),
      table_(parts.table),
      limit_(limit_pages),
      // Several sweeps at once must leave memory to others.
      reads_(static_cast<std::uint32_t>(
          std::clamp<std::uint64_t>(limit_pages / kPagesOfPart / 64, kSweep, kPartsOfChunk))),
      fetched_locality_(bringing),
      touched_locality_(bringing),
      rescued_locality_(bringing),
      opened_locality_(bringing),
      scratch_(2 * kPart, "pages to rearrange") {
  // The zeros are read by the kernel: they must be pages, not holes.
  for (std::size_t i = 0; i < scratch_.size(); i += kPage) scratch_[i] = std::byte{0};
}

void Pager::add_resident(PartId id, PageMask pages, Arrival::Why why) {
  Part& part = table_[id];
  const unsigned came = count_of(without(pages, part.present));
  resident_ += came;
  if (why != Arrival::Why::stayed) counts_.came += came;
  part.present = static_cast<PageMask>(part.present | pages);
  if (part.present == 0) return;
  if (resident_ + kPagesOfPart > limit_) crowded_ = true;
  const Arrival arrival{why, crowded_, came, limit_};
  part.listed ? at_.victims.grew(id, arrival) : at_.victims.arrived(id, arrival);
}

void Pager::remove_resident(PartId id, PageMask pages) {
  Part& part = table_[id];
  resident_ -= count_of(static_cast<PageMask>(part.present & pages));
  part.present = without(part.present, pages);
  part.dirty = without(part.dirty, pages);
  if (part.present == 0 && part.listed) at_.victims.left(id);
}

void Pager::set_limit(std::uint64_t pages) {
  if (ceiling_ < pages) ++ceiling_;  // others may have given memory up
  limit_ = std::min(pages, ceiling_);
}

/// A control group that is full, or a computer: what is resident now is already too much, whatever was
/// promised, and trying again would never end.
Pager::Step Pager::make_do_with_less() {
  constexpr std::uint64_t kLeast = 16 * kPagesOfPart;
  ceiling_ = std::max(resident_ - resident_ / 64, kLeast);
  limit_ = std::min(limit_, ceiling_);
  return Step::full;
}

void Pager::give_back(Slot slot) {
  at_.slots[tier_of(slot)]->give_back(index_of(slot));
  at_.stores[tier_of(slot)]->forget(std::uint64_t{index_of(slot)} * kPart, kPart);
}

void Pager::free_slot(Part& part) {
  if (part.slot != kNoSlot) give_back(part.slot);
  part.slot = kNoSlot;
  part.stored = 0;
}

Slot Pager::take_slot(std::uint32_t wanted, std::uint32_t& got, unsigned first_tier) {
  for (unsigned tier = first_tier; tier < at_.slots.size(); ++tier) {
    if (tier + 1 < at_.slots.size() && at_.stores[tier]->declines()) continue;
    const SlotTable::Run run = at_.slots[tier]->take(wanted);
    got = run.count;
    if (run.count > 0) return make_slot(tier, run.first);
  }
  return kNoSlot;
}

void Pager::found_present(Address address, PageMask pages) {
  const PartId id = table_.find_or_make(address);
  if (id == kNoPart || table_[id].state != PartState::idle) return;
  // What a slot holds was taken away by us, perhaps since the kernel was asked.
  const PageMask found = without(pages, static_cast<PageMask>(table_[id].stored | table_[id].present));
  if (found == 0) return;
  table_[id].dirty = static_cast<PageMask>(table_[id].dirty | found);
  add_resident(id, found, Arrival::Why::stayed);
}
// ---- forks

void Pager::hold_slots() {
  for (SlotTable* slots : at_.slots) slots->hold();
}

void Pager::let_slots_go() {
  for (SlotTable* slots : at_.slots) slots->let_go();
}

void Pager::stop_holding() {
  for (SlotTable* slots : at_.slots) slots->stop_holding();
}

bool Pager::in_frame(PartId id) const {
  const Part& part = table_[id];
  return is_lifted(part) && batch_of(part).owner[frame_of(part)] == id;
}

PageMask Pager::waiting(const Part& part) const {
  return is_lifted(part) ? batch_of(part).waiting[frame_of(part)] : PageMask{0};
}

void Pager::go_on_in_child() {
  at_.victims.clear();
  resident_ = staged_ = coming_ = 0;
  for (const Batch& batch : at_.batches) {
    resident_ += batch.pages;
    if (!batch.samples) staged_ += batch.pages;
  }
  table_.each_part([&](PartId id) {
    Part& part = table_[id];
    part.previous = part.next = kNoPart;
    part.listed = false;
    part.present = part.dirty = 0;
    if (part.slot == kNoSlot) part.stored = 0;
    if (in_frame(id)) return;
    part.state = PartState::idle;
    part.frame = 0;
  });
  counts_ = {};
  loss_ = {};
}

void Pager::found_in_child(Address address, PageMask pages) {
  const PartId id = table_.find_or_make(address);
  if (id == kNoPart) return;
  // The part was on its way back when the process forked: the frame has the pages that are still missing.
  if (in_frame(id)) bring_all_back(id, Arrival::Why::stayed);
  add_resident(id, pages, Arrival::Why::stayed);
  table_[id].dirty = table_[id].present;
}

const char* Pager::check_records() const {
  std::uint64_t resident = 0;
  bool fetches = false;
  const char* wrong = nullptr;
  auto& table = const_cast<PartTable&>(table_);
  table.each_part([&](PartId id) {
    const Part& part = table_[id];
    resident += count_of(part.present);
    fetches |= part.state == PartState::fetching;
    if (part.listed != (part.present != 0)) wrong = "a part is listed if and only if it is resident";
    if (without(part.dirty, part.present) != 0) wrong = "dirty pages are present";
    if (part.stored != 0 && part.slot == kNoSlot) wrong = "stored pages have a slot";
    if (part.slot != kNoSlot && !at_.slots[tier_of(part.slot)]->in_use(index_of(part.slot)))
      wrong = "a part's slot is in use";
    if (!is_lifted(part)) return;
    if (!in_frame(id)) wrong = "a lifted part owns its frame";
    if (waiting(part) == 0) wrong = "something of a lifted part is still to be written";
    if ((waiting(part) & part.present) != 0) wrong = "a page is in the program or waits in a frame";
  });
  std::uint64_t staged = 0;
  for (const Batch& batch : at_.batches) {
    resident += batch.pages;
    if (!batch.samples) staged += batch.pages;
  }
  if (coming_ != 0 && !fetches) wrong = "pages that are coming are being fetched";
  if (staged != staged_) wrong = "the count of staged pages is the sum over the batches";
  if (resident != resident_) wrong = "the count of resident pages is the sum over the parts";
  return wrong != nullptr ? wrong : "";
}

}  // namespace terrace::pages

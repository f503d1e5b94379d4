// SPDX-License-Identifier: Apache-2.0
// What a fault does (pager.hpp).
#include <algorithm>

#include "pages/pager.hpp"

namespace terrace::pages {

Pager::Step Pager::fault(const Event& event, Fetch& fetch) {
  const PartId id = table_.find_or_make(event.address);
  if (id == kNoPart) {
    // A full table leaves the page to be zero, which it is: no part without a record was ever taken away.
    const PagesDone done = at_.control.fill(part_start(event.address), page_bit(event.address), &scratch_[0],
                                            Protection::writable);
    if (done.again) return Step::again;
    at_.control.wake(part_start(event.address));
    return Step::done;
  }
  Part& part = table_[id];
  if (at_.log != nullptr) at_.log->note(event.address, event.kind == Event::Kind::write || event.by_write);
  switch (part.state) {
    case PartState::fetching:
      return Step::done;  // fetched() wakes everybody who waits for the part
    case PartState::lifted:
    case PartState::writing:
      return fault_lifted(id, event, fetch);
    case PartState::idle:
      break;
  }
  if (event.kind == Event::Kind::missing) return fault_missing(id, event, fetch);
  return open_for_writing(id, event.address);
}

/// Opens the page, all of its part where others are usually written soon, and parts ahead where writes follow
/// each other. They then count as written.
Pager::Step Pager::open_for_writing(PartId id, Address address) {
  const Address start = table_.address(id);
  const PageMask worth = opened_locality_.worth(address);
  const bool whole = worth == kAllPages || first_writes_.follows(start);
  const auto wanted = static_cast<PageMask>(table_[id].present & (whole ? kAllPages : worth));
  written_.written(start);
  const std::uint32_t window = whole ? first_writes_.window(start) : 1;
  std::uint32_t opened = 0;
  do {
    Part& part = table_[id];
    const PageMask pages = opened == 0 ? wanted : part.present;
    // Dirty first: a child that is forked in between takes the page for written, which is safe.
    part.dirty = static_cast<PageMask>(part.dirty | pages);
    if (!at_.control.unprotect(table_.address(id), opened == 0 ? pages | page_bit(address) : pages))
      return Step::again;
    id = table_.find(start + ++opened * kPart);
  } while (opened < window && id != kNoPart && table_[id].state == PartState::idle &&
           table_[id].present != 0 && table_[id].dirty == 0);
  if (whole) first_writes_.served(start, start + opened * kPart, window);
  ++counts_.faults;
  ++counts_.write_faults;
  return Step::done;
}

Pager::Step Pager::fault_missing(PartId id, const Event& event, Fetch& fetch) {
  const Part& part = table_[id];
  const PageMask absent = without(part.stored, part.present);
  if ((absent & page_bit(event.address)) == 0) return fill_zeros(id, event);
  const Address start = table_.address(id);
  // Pages that join a slot cannot leave while a forked child may read it: then the whole part comes.
  if (!has_room(is_held(part) ? count_of(absent) : 1)) return Step::full;
  const PageMask worth = fetched_locality_.worth(event.address);
  const bool whole = is_held(part) || reads_.follows(start);
  const auto pages = static_cast<PageMask>((whole ? kAllPages : worth) & absent);
  begin_fetch(id, has_room(count_of(pages)) ? pages : page_bit(event.address), event, fetch);
  ++counts_.faults;
  ++counts_.fetch_faults;
  return Step::fetch;
}

Pager::Step Pager::promote(Address address, Fetch& fetch) {
  const PartId id = table_.find(address);
  if (id == kNoPart) return Step::none;
  const Part& part = table_[id];
  if (part.state != PartState::idle || part.present != 0 || part.stored == 0) return Step::none;
  if (!has_room(kPagesOfPart) || cornered_) return Step::none;
  counts_.promoted += count_of(part.stored);
  begin_fetch(id, part.stored, {Event::Kind::missing, address}, fetch);
  return Step::fetch;
}

/// Returns `done` where all of the pages are there now, `none` where some could not be filled.
Pager::Step Pager::fill_part_with_zeros(PartId id, PageMask pages) {
  const PagesDone done = at_.control.fill(table_.address(id), pages, &scratch_[0], Protection::writable);
  // A page that exists without a record is about to be discarded, and this fault was answered before: what
  // the program gave up must not be kept.
  const PageMask fresh = without(done.pages, done.existed);
  add_resident(id, fresh, Arrival::Why::touched);
  table_[id].dirty = static_cast<PageMask>(table_[id].dirty | fresh);
  if (done.again) return Step::again;
  if (done.no_memory) return make_do_with_less();
  return done.pages == pages ? Step::done : Step::none;
}

Pager::Step Pager::fill_zeros(PartId id, const Event& event) {
  const Part& part = table_[id];
  const Address start = table_.address(id);
  // A part whose pages are touched together comes whole, and more of them where touches follow each other.
  if (!has_room(1)) return Step::full;
  const bool untouched = part.empty();
  const PageMask worth = touched_locality_.worth(event.address);
  const bool whole_part = worth == kAllPages || first_touches_.follows(start);
  const PageMask zeros =
      without(kAllPages, static_cast<PageMask>(part.present | part.stored | waiting(part)));
  const auto more = static_cast<PageMask>(whole_part ? zeros : worth & zeros);
  const auto pages = static_cast<PageMask>(page_bit(event.address) | (has_room(count_of(more)) ? more : 0));
  Step step = fill_part_with_zeros(id, pages);
  if (step == Step::again || (step == Step::full && (part.present & page_bit(event.address)) == 0))
    return step;
  const std::uint32_t window = whole_part && untouched ? first_touches_.window(start) : 1;
  std::uint32_t filled = 1;
  for (; step == Step::done && filled < window && resident_ + 4 * kPagesOfPart <= limit_; ++filled) {
    const PartId next = table_.find_or_make(start + filled * kPart);
    if (next == kNoPart || !table_[next].empty()) break;
    step = fill_part_with_zeros(next, kAllPages);
    if (table_[next].present != 0) at_.control.wake(start + filled * kPart);
  }
  if (whole_part) first_touches_.served(start, start + filled * kPart, window);
  at_.control.wake(start);
  ++counts_.faults;
  ++counts_.zero_faults;
  return Step::done;
}

bool Pager::reads(PartId id, const Event& event) const {
  if (id == kNoPart || event.kind != Event::Kind::missing) return false;
  const Part& part = table_[id];
  if ((without(part.stored, part.present) & page_bit(event.address)) == 0) return false;
  if (part.state == PartState::idle) return true;
  if (!is_lifted(part) || (waiting(part) & page_bit(event.address)) != 0) return false;
  return (batch_of(part).dirty[frame_of(part)] & waiting(part)) == 0 && !batch_of(part).samples;
}

/// A page that waits in the frame comes back, alone where touches are scattered: so what is in use of a part
/// stays, and what only lies beside it leaves.
Pager::Step Pager::fault_lifted(PartId id, const Event& event, Fetch& fetch) {
  const Part& part = table_[id];
  Batch& batch = batch_of(part);
  const std::size_t i = frame_of(part);
  const PageMask page = page_bit(event.address);
  if ((batch.waiting[i] & page) != 0) {
    const PageMask wanted = batch.samples ? kAllPages : rescued_locality_.worth(event.address);
    const auto pages = static_cast<PageMask>(batch.waiting[i] & wanted);
    if (const Step step = bring_back(id, pages, Arrival::Why::rescued); step != Step::done) return step;
    ++counts_.rescues;
  } else if (event.kind == Event::Kind::write) {
    return open_for_writing(id, event.address);
  } else if ((without(part.stored, part.present) & page) == 0) {
    return fill_zeros(id, event);
  } else if (reads(id, event)) {
    // The slot has the frame's pages, too.
    leave_unwritten(batch, i);
    return fault_missing(id, event, fetch);
  } else if (const Step step = bring_all_back(id, Arrival::Why::stayed); step != Step::done) {
    return step;
  }
  ++counts_.faults;
  return Step::done;
}

/// Moves pages back where nobody reads the frame: they take no memory twice, and count as written, because a
/// moved page cannot be write-protected before others write it. Returns `again` or `done`.
Pager::Step Pager::move_back(PartId id, PageMask& pages, Arrival::Why why) {
  Part& part = table_[id];
  Batch& batch = batch_of(part);
  const std::size_t i = frame_of(part);
  // A sample is to change nothing: what was clean stays so.
  const auto wanted = static_cast<PageMask>(batch.samples ? pages & batch.dirty[i] : pages);
  const PagesDone done =
      batch.leaving ? PagesDone{} : at_.control.put_back(table_.address(id), wanted, batch.frame(i));
  const PageMask back = without(done.pages, done.existed);
  batch.pages -= count_of(back);
  resident_ -= count_of(back);
  if (!batch.samples) staged_ -= count_of(back);
  batch.mask[i] = without(batch.mask[i], back);
  batch.waiting[i] = without(batch.waiting[i], done.pages);
  if (batch.waiting[i] == 0) detach_frame(part);
  part.dirty = static_cast<PageMask>(part.dirty | done.pages);
  add_resident(id, done.pages, why);
  pages = without(pages, done.pages);
  return done.again ? Step::again : Step::done;
}

// A frame that is being written keeps its bytes, because a disk may be reading them; with the last page it
// has no owner any more.
Pager::Step Pager::bring_back(PartId id, PageMask pages, Arrival::Why why) {
  if (move_back(id, pages, why) == Step::again) return Step::again;
  if (pages == 0) return at_.control.wake(table_.address(id)), Step::done;
  Part& part = table_[id];
  Batch& batch = batch_of(part);
  const std::size_t i = frame_of(part);
  const auto dirty = static_cast<PageMask>(pages & batch.dirty[i]);
  PagesDone all;
  for (const PageMask some : {dirty, without(pages, dirty)}) {
    const auto protection = some == dirty ? Protection::writable : Protection::read_only;
    const PagesDone done = at_.control.fill(table_.address(id), some, batch.frame(i), protection);
    all.pages = static_cast<PageMask>(all.pages | done.pages);
    all.again |= done.again;
    all.no_memory |= done.no_memory;
  }
  if (all.again) return Step::again;
  // What the system has no memory for waits on; the rest of the program's memory is gone, and nobody asks.
  const PageMask back = all.no_memory ? all.pages : pages;
  part.dirty = static_cast<PageMask>(part.dirty | (back & dirty));
  batch.waiting[i] = without(batch.waiting[i], back);
  if (batch.waiting[i] == 0) detach_frame(part);
  add_resident(id, back, why);
  at_.control.wake(table_.address(id));
  return all.no_memory ? make_do_with_less() : Step::done;
}

Pager::Step Pager::bring_all_back(PartId id, Arrival::Why why) {
  return bring_back(id, waiting(table_[id]), why);
}

bool Pager::can_read_ahead(PartId id, Slot slot) const {
  if (id == kNoPart) return false;
  const Part& part = table_[id];
  return part.state == PartState::idle && part.present == 0 && part.stored == kAllPages && part.slot == slot;
}

void Pager::begin_fetch(PartId id, PageMask pages, const Event& event, Fetch& fetch) {
  const Address start = table_.address(id);
  fetch = Fetch{};
  fetch.slot = table_[id].slot;
  fetch.pages = pages;
  fetch.written = written_.expected(start) ? kAllPages
                  : event.by_write         ? page_bit(event.address)
                                           : PageMask{0};
  std::uint32_t window = reads_.window(start);
  const std::uint32_t asked = window;
  fetch.swept = asked >= kSweep;
  if (pages != kAllPages) window = 1;
  // Reading ahead stays within half of what is free, so that it never drives out what it just read.
  const std::uint64_t taken = resident_ + coming_;
  const std::uint64_t spare = limit_ > taken ? (limit_ - taken) / 2 / kPagesOfPart : 0;
  window = static_cast<std::uint32_t>(std::min<std::uint64_t>(window, std::max<std::uint64_t>(spare, 1)));
  PartId part = id;
  do {
    fetch.parts[fetch.count] = part;
    coming_ += pages_of(fetch, fetch.count++);
    table_[part].state = PartState::fetching;
    part = table_.find(start + fetch.count * kPart);
  } while (fetch.count < window &&
           can_read_ahead(part, Slot{static_cast<std::uint32_t>(fetch.slot) + fetch.count}));
  reads_.served(start, start + fetch.count * kPart, asked);
}

Pager::Step Pager::read_ahead(Address start, Fetch& fetch) {
  const PartId id = table_.find(start);
  if (!reads_.follows(start) || id == kNoPart || cornered_ || !has_room(kPagesOfPart)) return Step::none;
  if (!can_read_ahead(id, table_[id].slot)) return Step::none;
  begin_fetch(id, kAllPages, {Event::Kind::missing, start}, fetch);
  fetch.ahead = true;
  return Step::fetch;
}

void Pager::forget(Fetch& fetch) {
  for (; fetch.count > 0; --fetch.count) {
    const PartId id = fetch.parts[fetch.count - 1];
    coming_ -= pages_of(fetch, fetch.count - 1);
    table_[id].state = PartState::idle;
    if (table_[id].empty()) free_slot(table_[id]);
    at_.control.wake(table_.address(id));
  }
}

void Pager::settle_fetched(PartId id, PageMask filled, PageMask writable, Arrival::Why why) {
  Part& part = table_[id];
  part.state = PartState::idle;
  counts_.fetched += count_of(without(filled, part.present));
  add_resident(id, filled, why);
  part.dirty = static_cast<PageMask>(part.dirty | (filled & writable));
  if (part.empty()) free_slot(part);
  at_.control.wake(table_.address(id));
}

void Pager::forget_pages(PartId id, PageMask pages) {
  Part& part = table_[id];
  part.stored = without(part.stored, pages);
  each_run(pages, [&](std::size_t first, std::size_t count) {
    const std::uint64_t place = std::uint64_t{index_of(part.slot)} * kPart + first * kPage;
    at_.stores[tier_of(part.slot)]->forget(place, count * kPage);
    return true;
  });
}

Pager::Step Pager::fetched(Fetch& fetch, const std::byte* data, int cause) {
  if (cause != 0) return lose(fetch, cause);
  // The part that a thread waits for comes first, then those read ahead.
  while (fetch.count > 0) {
    if (fetch.ahead && fetch.count == 1) return Step::held;
    const std::uint32_t i = fetch.wanted_is_filled || fetch.ahead ? fetch.count - 1 : 0;
    const PartId id = fetch.parts[i];
    const Part& part = table_[id];
    // The program may have given pages up meanwhile.
    const auto pages =
        static_cast<PageMask>((i == 0 ? fetch.pages : kAllPages) & without(part.stored, part.present));
    // Compressed memory gives a page up when it has been unpacked: twice in memory it would be of no use.
    Store& store = *at_.stores[tier_of(fetch.slot)];
    const PageMask writable = store.is_memory() || fetch.written == kAllPages ? kAllPages
                              : i == 0                                        ? fetch.written
                                                                              : PageMask{0};
    PagesDone done =
        at_.control.fill(table_.address(id), pages & writable, data + i * kPart, Protection::writable);
    const PagesDone rest = at_.control.fill(table_.address(id), without(pages, writable), data + i * kPart,
                                            Protection::read_only);
    done.pages = static_cast<PageMask>(done.pages | rest.pages);
    done.no_memory |= rest.no_memory;
    if (done.again || rest.again) return Step::again;
    if (store.is_memory()) forget_pages(id, done.pages);
    coming_ -= pages_of(fetch, i);
    settle_fetched(id, done.pages, writable, fetch.swept ? Arrival::Why::swept : Arrival::Why::touched);
    if (done.no_memory) make_do_with_less();
    if (i > 0) counts_.read_ahead += count_of(done.pages);
    if (i > 0 || fetch.count == 1) --fetch.count;
    fetch.wanted_is_filled |= i == 0;
    if (fetch.wanted_is_filled && fetch.count == 1) break;  // that is the wanted one
  }
  return Step::done;
}

Pager::Step Pager::lose(Fetch& fetch, int cause) {
  // What was only read ahead may wait for somebody who wants it.
  for (; fetch.count > 1; --fetch.count) {
    const PartId id = fetch.parts[fetch.count - 1];
    coming_ -= pages_of(fetch, fetch.count - 1);
    table_[id].state = PartState::idle;
    if (table_[id].empty()) free_slot(table_[id]);
    at_.control.wake(table_.address(id));
    if (fetch.count == 2) return --fetch.count, Step::fetch;
  }
  const PartId id = fetch.parts[0];
  Part& part = table_[id];
  const auto pages = static_cast<PageMask>(fetch.pages & without(part.stored, part.present));
  if (loss_.cause == 0) {
    const std::uint64_t offset = std::uint64_t{index_of(fetch.slot)} * kPart;
    loss_ = {cause, tier_of(fetch.slot), offset, table_.address(id)};
  }
  counts_.lost += count_of(pages);
  coming_ -= pages_of(fetch, 0);
  part.state = PartState::idle;
  at_.control.poison(table_.address(id), pages);
  at_.control.wake(table_.address(id));
  return Step::done;
}

}  // namespace terrace::pages

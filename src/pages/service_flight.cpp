// SPDX-License-Identifier: Apache-2.0
// Fetches that no thread waits for: the listener starts their reads in the ring and fills in what comes
// (service.hpp).
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "pages/clock.hpp"
#include "pages/service.hpp"

namespace terrace::pages {
namespace {

constexpr std::uint16_t kFlights = 16;
constexpr std::size_t kMostHeld = 4;  // as many sweeps go on at once
// Large fetches are read in pieces, all at once: a disk is faster with several requests.
constexpr std::size_t kPiece = 256 << 10;
static_assert(kFlights * (kChunk / kPiece) <= ReadRing::kDepth);
static_assert(kFlights * kPagesOfPart / 2 <= ReadRing::kDepth);

// A read's tag says which flight it belongs to and how many bytes it is to bring.
constexpr std::uint64_t tag_of(std::uint16_t flight, std::size_t bytes) { return bytes << 16 | flight; }
constexpr std::uint16_t flight_of(std::uint64_t tag) { return static_cast<std::uint16_t>(tag); }
constexpr std::int64_t bytes_of(std::uint64_t tag) { return static_cast<std::int64_t>(tag >> 16); }

/// Calls `visit(at, bytes)` for each run of pages that a fetch reads, `at` from the first part's start.
template <class Visit>
void each_stretch_of(const Fetch& fetch, PageMask pages, Visit visit) {
  if (pages == kAllPages) return visit(std::size_t{0}, fetch.count * kPart);
  each_run(pages, [&](std::size_t first, std::size_t count) {
    visit(first * kPage, count * kPage);
    return true;
  });
}

}  // namespace

/// In a forked child the ring, and what flew in it, is the parent's.
void Service::prepare_flights() {
  ring_ = options_.use_ring ? ReadRing::open() : nullptr;
  grounded_.clear();
  held_.clear();
  held_.reserve(kFlights);  // nothing is allocated while faults are served
  if (ring_ == nullptr) return flights_.clear();
  flights_.resize(kFlights);
  for (std::uint16_t i = 0; i < kFlights; ++i) {
    Flight& flight = flights_[i];
    flight.pieces = 0;
    flight.holds = flight.busy = false;
    flight.idle_ticks = 0;
    if (flight.buffer == nullptr)
      flight.buffer = std::make_unique<Reserved<std::byte>>(kChunk, "a fetch's buffer");
    grounded_.push_back(i);
  }
}

bool Service::can_take_off(Slot slot) {
  if (!ring_ || (store_of(slot).descriptor() < 0 && !store_of(slot).is_memory())) return false;
  if (grounded_.empty() && !held_.empty()) stop_holding();
  return !grounded_.empty();
}

void Service::take_off(const Fetch& fetch, const Pending& fault, std::unique_lock<std::mutex>& lock) {
  const std::uint16_t number = grounded_.back();
  grounded_.pop_back();
  Flight& flight = flights_[number];
  flight.busy = true;
  if (fetch.count * kPart > flight.touched_bytes) {
    // The next tick finds the buffer among what is in use; until then it is taken off here.
    pager_->take_off_limit((fetch.count * kPart - flight.touched_bytes) / kPage);
    flight.touched_bytes = fetch.count * kPart;
  }
  flight.fetch = fetch;
  flight.fault = fault;
  flight.end = pager_->end_of(fetch);
  const Address end = flight.end;
  depart(number, lock);
  if (store_of(fetch.slot).is_memory()) return;
  if (wakeful_) wakeful_->stay_awake();
  if (fetch.swept && !fetch.ahead) read_on(end, lock);
}

/// What lies in memory is read at once.
void Service::depart(std::uint16_t number, std::unique_lock<std::mutex>& lock) {
  if (!store_of(flights_[number].fetch.slot).is_memory()) return start_reads(number);
  flights_[number].failed = true;  // nothing of it has been read
  arrive(number, lock);
}

/// A sweep has come to the parts before `end`: what follows is read while the program works on them.
void Service::read_on(Address end, std::unique_lock<std::mutex>& lock) {
  if (grounded_.empty()) return;
  if (held_.size() >= kMostHeld) stop_holding();
  Fetch fetch;
  const PartId id = table_.find(end);
  if (id == kNoPart || table_[id].slot == kNoSlot || !can_take_off(table_[id].slot)) return;
  if (store_of(table_[id].slot).is_memory()) return;  // there is nothing to wait for
  if (pager_->read_ahead(end, fetch) == Pager::Step::fetch) take_off(fetch, {}, lock);
}

/// Returns whether this fault is a touch of the part that a flight holds back, or will.
bool Service::goes_on(PartId id, const Pending& fault, std::unique_lock<std::mutex>& lock) {
  const auto found = std::find_if(flights_.begin(), flights_.end(), [&](const Flight& flight) {
    return flight.fetch.ahead && flight.busy && flight.fetch.parts[0] == id;
  });
  if (found == flights_.end()) return false;
  found->fetch.ahead = false;
  found->fault = fault;
  const Address end = found->end;
  const auto number = static_cast<std::uint16_t>(found - flights_.begin());
  if (std::exchange(found->holds, false)) {
    std::erase(held_, number);
    const std::byte* const data = found->buffer->data();
    while (pager_->fetched(found->fetch, data, 0) == Pager::Step::again) let_an_event_be_read(lock);
    answered(fault);
    ground(number);
  }
  read_on(end, lock);
  ring_->start();
  if (needs_room()) room_.notify_one();
  return true;
}

/// The sweep that the oldest of them was for has not come.
void Service::stop_holding() {
  const std::uint16_t number = held_.front();
  held_.erase(held_.begin());
  flights_[number].holds = false;
  pager_->forget(flights_[number].fetch);
  ground(number);
}

void Service::ground(std::uint16_t number) {
  flights_[number].busy = false;
  flights_[number].idle_ticks = 0;
  grounded_.push_back(number);
}

/// Buffers are memory of the program's allowance, too. Touching one anew takes longer than the read, so it is
/// kept while sweeps go on.
void Service::give_idle_buffers_back() {
  constexpr unsigned kIdleTicks = 20;
  for (const std::uint16_t number : grounded_) {
    Flight& flight = flights_[number];
    if (flight.touched_bytes <= kPart || ++flight.idle_ticks < kIdleTicks) continue;
    madvise(flight.buffer->data(), flight.touched_bytes, MADV_DONTNEED);
    flight.touched_bytes = 0;
  }
}

/// They start when the listener has no other message to read: several at once cost little more than one.
void Service::start_reads(std::uint16_t number) {
  Flight& flight = flights_[number];
  flight.failed = false;
  const Store& store = store_of(flight.fetch.slot);
  const std::uint64_t place = std::uint64_t{index_of(flight.fetch.slot)} * kPart;
  each_stretch_of(flight.fetch, read_for(flight.fetch), [&](std::size_t at, std::size_t bytes) {
    for (const std::size_t end = at + bytes; at < end; at += kPiece) {
      const std::size_t piece = std::min(kPiece, end - at);
      ring_->add(store.descriptor(), place + at, flight.buffer->data() + at, piece, tag_of(number, piece));
      ++flight.pieces;
    }
  });
}

void Service::land(std::unique_lock<std::mutex>& lock) {
  while (ring_->has_news()) {
    const ReadRing::Done done = ring_->take();
    const std::uint16_t number = flight_of(done.tag);
    Flight& flight = flights_[number];
    flight.failed |= done.result != bytes_of(done.tag);
    if (--flight.pieces == 0) arrive(number, lock);
  }
}

void Service::arrive(std::uint16_t number, std::unique_lock<std::mutex>& lock) {
  Flight& flight = flights_[number];
  Fetch& fetch = flight.fetch;
  std::byte* const data = flight.buffer->data();
  Store& store = store_of(fetch.slot);
  int cause = 0;
  lock.unlock();
  // What came short or not at all is asked for once more, in the way that can tell why.
  if (flight.failed) {
    cause = read(fetch, data);
  } else {
    const std::uint64_t place = std::uint64_t{index_of(fetch.slot)} * kPart;
    each_stretch_of(fetch, read_for(fetch),
                    [&](std::size_t at, std::size_t bytes) { store.decode(place + at, data + at, bytes); });
  }
  lock_soon(lock);
  // What nobody has asked for may wait for somebody who can be told.
  if (cause != 0 && fetch.ahead) {
    pager_->forget(fetch);
    return ground(number);
  }
  switch (fill_in(fetch, data, cause, lock)) {
    case Pager::Step::fetch:
      return depart(number, lock);
    case Pager::Step::held:
      flight.holds = true;
      return held_.push_back(number);
    default:
      answered(flight.fault);
      ground(number);
  }
}

}  // namespace terrace::pages

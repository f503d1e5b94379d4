// SPDX-License-Identifier: Apache-2.0
// Fetches that no thread waits for: the listener starts their reads in the ring and fills in what comes
// (service.hpp).
#include <algorithm>

#include "pages/clock.hpp"
#include "pages/service.hpp"

namespace terrace::pages {
namespace {

constexpr std::uint16_t kFlights = 16;
// Large fetches are read in pieces, all at once: a disk is faster with several requests.
constexpr std::size_t kPiece = 256 << 10;
static_assert(kFlights * (kChunk / kPiece) <= ReadRing::kDepth);
static_assert(kFlights * kPagesOfPart / 2 <= ReadRing::kDepth);

// A read's tag says which flight it belongs to and how many bytes it is to bring.
constexpr std::uint64_t tag_of(std::uint16_t flight, std::size_t bytes) { return bytes << 16 | flight; }
constexpr std::uint16_t flight_of(std::uint64_t tag) { return static_cast<std::uint16_t>(tag); }
constexpr std::int64_t bytes_of(std::uint64_t tag) { return static_cast<std::int64_t>(tag >> 16); }

/// Calls `visit(at, bytes)` for each run of pages that a fetch brings, `at` from the first part's start.
template <class Visit>
void each_stretch_of(const Fetch& fetch, Visit visit) {
  if (fetch.pages == kAllPages) return visit(std::size_t{0}, fetch.count * kPart);
  each_run(fetch.pages, [&](std::size_t first, std::size_t count) {
    visit(first * kPage, count * kPage);
    return true;
  });
}

}  // namespace

/// In a forked child the ring, and what flew in it, is the parent's.
void Service::prepare_flights() {
  ring_ = options_.use_ring ? ReadRing::open() : nullptr;
  grounded_.clear();
  if (ring_ == nullptr) return flights_.clear();
  flights_.resize(kFlights);
  for (std::uint16_t i = 0; i < kFlights; ++i) {
    Flight& flight = flights_[i];
    flight.pieces = 0;
    if (flight.buffer == nullptr)
      flight.buffer = std::make_unique<Reserved<std::byte>>(kChunk, "a fetch's buffer");
    grounded_.push_back(i);
  }
}

bool Service::can_take_off(Slot slot) const {
  return !grounded_.empty() && store_views_[tier_of(slot)]->descriptor() >= 0;
}

void Service::take_off(const Fetch& fetch, const Pending& fault) {
  const std::uint16_t number = grounded_.back();
  grounded_.pop_back();
  flights_[number].fetch = fetch;
  flights_[number].fault = fault;
  start_reads(number);
}

void Service::start_reads(std::uint16_t number) {
  Flight& flight = flights_[number];
  flight.failed = false;
  const Store& store = *store_views_[tier_of(flight.fetch.slot)];
  const std::uint64_t place = std::uint64_t{index_of(flight.fetch.slot)} * kPart;
  each_stretch_of(flight.fetch, [&](std::size_t at, std::size_t bytes) {
    for (const std::size_t end = at + bytes; at < end; at += kPiece) {
      const std::size_t piece = std::min(kPiece, end - at);
      ring_->add(store.descriptor(), place + at, flight.buffer->data() + at, piece, tag_of(number, piece));
      ++flight.pieces;
    }
  });
  ring_->start();  // what is refused now is started when the listener looks again
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
  Store& store = *store_views_[tier_of(fetch.slot)];
  int cause = 0;
  lock.unlock();
  // What came short or not at all is asked for once more, in the way that can tell why.
  if (flight.failed) {
    cause = read(fetch, data);
  } else {
    const std::uint64_t place = std::uint64_t{index_of(fetch.slot)} * kPart;
    each_stretch_of(fetch,
                    [&](std::size_t at, std::size_t bytes) { store.decode(place + at, data + at, bytes); });
  }
  lock_soon(lock);
  if (fill_in(fetch, data, cause, lock)) return start_reads(number);
  answered(flight.fault);
  grounded_.push_back(number);
}

}  // namespace terrace::pages

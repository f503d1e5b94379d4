// SPDX-License-Identifier: Apache-2.0
// The thread of the service that makes room (service.hpp).
#include <sched.h>
#include <sys/mman.h>

#include <bit>
#include <chrono>
#include <cstring>

#include "pages/service.hpp"

namespace terrace::pages {
namespace {

constexpr auto kTick = std::chrono::milliseconds(10);
constexpr auto kHope = std::chrono::seconds(1);

bool is_zero(const std::byte* data, std::size_t bytes) {
  return data[0] == std::byte{0} && std::memcmp(data, data + 1, bytes - 1) == 0;
}

}  // namespace

bool Service::needs_room() const {
  return !paused_ && !pager_->cornered() && pager_->resident() + reserve_pages_ > pager_->limit();
}

void Service::room_was_made() {
  if (!delayed_.empty()) kick();
}

void Service::evict() {
  std::unique_lock lock(mutex_);
  auto next_tick = std::chrono::steady_clock::now(), next_hope = next_tick;
  while (!stopping_) {
    // Where nothing could leave, something may be able to a second later.
    if (!paused_ && pager_->cornered() && std::chrono::steady_clock::now() >= next_hope) {
      pager_->set_cornered(false);
      next_hope = std::chrono::steady_clock::now() + kHope;
    }
    if (!needs_room()) room_.wait_for(lock, kTick);
    if (stopping_) break;
    if (paused_) continue;
    if (options_.tick && std::chrono::steady_clock::now() >= next_tick) {
      evicting_ = true;
      lock.unlock();
      options_.tick();
      lock.lock();
      evicting_ = false;
      quiet_.notify_all();
      next_tick = std::chrono::steady_clock::now() + kTick;
    }
    if (!needs_room()) continue;
    evicting_ = true;
    bool filled = false;
    if (!free_.empty() && lifted_.size() <= waiting_batches_) {
      const std::uint16_t number = free_.front();
      free_.pop_front();
      filled = fill_batch(batches_[number], lock);
      (batches_[number].count > 0 ? lifted_ : free_).push_back(number);
    }
    if (!lifted_.empty() && (lifted_.size() > waiting_batches_ || !filled)) {
      const std::uint16_t number = lifted_.front();
      lifted_.pop_front();
      empty_batch(batches_[number], lock);
      free_.push_back(number);
    } else if (lifted_.empty() && !filled) {
      nothing_can_leave();
    }
    // Every part was tried, twice where a fork had shared it.
    if (fruitless_ > 2 * pager_->resident() / kPagesOfPart + 4) nothing_can_leave();
    evicting_ = false;
    quiet_.notify_all();
  }
}

namespace {

/// The kernel moves no page that a fork has made two processes share, though one of them may have ended or
/// have a copy. Writing makes it this process's own; the contents stay.
void make_unshared(const Stuck& stuck) {
  each_run(stuck.pages, [&](std::size_t first, std::size_t count) {
    madvise(reinterpret_cast<void*>(stuck.part + first * kPage), count * kPage, MADV_POPULATE_WRITE);
    return true;
  });
}

}  // namespace

/// Faults must not wait for it.
void Service::nothing_can_leave() {
  fruitless_ = 0;
  pager_->set_cornered(true);
  room_was_made();
}

/// Returns whether the batch holds as much as it should.
bool Service::fill_batch(Batch& batch, std::unique_lock<std::mutex>& lock) {
  for (std::size_t tries = 0; batch.count < parts_of_batch_ && tries < 4 * parts_of_batch_; ++tries) {
    const Pager::Step step = pager_->lift(batch);
    if (step == Pager::Step::none) break;
    fruitless_ = step == Pager::Step::done ? 0 : fruitless_ + 1;
    const Stuck stuck = pager_->take_stuck();
    // A fault must not wait for a whole batch.
    lock.unlock();
    if (stuck.pages != 0 && forked_) make_unshared(stuck);
    if (step == Pager::Step::again) sched_yield();
    lock.lock();
    if (stopping_ || paused_) break;
  }
  return batch.count == parts_of_batch_;
}

void Service::empty_batch(Batch& batch, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  for (std::size_t i = 0; i < batch.count; ++i)
    batch.zero[i] = batch.mask[i] == kAllPages && is_zero(batch.frame(i), kPart);
  lock.lock();
  pager_->plan(batch);
  lock.unlock();
  write(batch);
  lock.lock();
  bool refused = false;
  for (std::size_t i = 0; i < batch.count; ++i) {
    refused |= batch.cause[i] != 0;
    if (batch.slot[i] != kNoSlot && batch.cause[i] == 0)
      totals_.written_bytes += kPage * static_cast<unsigned>(std::popcount(batch.mask[i]));
    while (pager_->written(batch, i) == Pager::Step::again) let_an_event_be_read(lock);
  }
  lock.unlock();
  // Where events are on, this waits until the listener has read of it.
  madvise(batch.frames, kChunk, MADV_DONTNEED);
  lock.lock();
  pager_->released(batch);
  if (refused) pager_->set_cornered(true);
  room_was_made();
}

void Service::write(Batch& batch) {
  for (std::size_t i = 0; i < batch.count;) {
    std::size_t end = i + 1;
    if (batch.slot[i] != kNoSlot && batch.mask[i] == kAllPages) {
      while (end < batch.count && batch.mask[end] == kAllPages && batch.slot[end] != kNoSlot &&
             static_cast<std::uint32_t>(batch.slot[end]) ==
                 static_cast<std::uint32_t>(batch.slot[i]) + end - i)
        ++end;
    }
    if (batch.slot[i] != kNoSlot) write_run(batch, i, end - i);
    i = end;
  }
}

/// Writes frames whose slots neighbour each other. Several are whole; a single one may have holes.
void Service::write_run(Batch& batch, std::size_t first, std::size_t count) {
  Store& store = *store_views_[tier_of(batch.slot[first])];
  const std::uint64_t place = std::uint64_t{index_of(batch.slot[first])} * kPart;
  int cause = 0;
  if (batch.mask[first] == kAllPages) {
    const iovec piece{batch.frame(first), count * kPart};
    cause = store.write(place, {&piece, 1});
  } else {
    each_run(batch.mask[first], [&](std::size_t page, std::size_t pages) {
      const iovec piece{batch.frame(first) + page * kPage, pages * kPage};
      cause = store.write(place + page * kPage, {&piece, 1});
      return cause == 0;
    });
  }
  for (std::size_t i = first; i < first + count; ++i) batch.cause[i] = cause;
}

}  // namespace terrace::pages

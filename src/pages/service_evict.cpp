// SPDX-License-Identifier: Apache-2.0
// The thread of the service that makes room (service.hpp).
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "pages/service.hpp"

namespace terrace::pages {
namespace {

constexpr auto kTick = std::chrono::milliseconds(5), kSoon = std::chrono::milliseconds(1);
constexpr auto kHope = std::chrono::seconds(1);

bool is_zero(const std::byte* data, std::size_t bytes) {
  return data[0] == std::byte{0} && std::memcmp(data, data + 1, bytes - 1) == 0;
}

}  // namespace

bool Service::needs_room() const {
  return !paused_ && !pager_->cornered() &&
         pager_->resident() + pager_->coming() + reserve_.pages() > pager_->limit();
}

/// What leaves waits in staging first, for as long as an eighth of fast memory takes to be replaced: whoever
/// is used is touched meanwhile and stays (a second chance, in place of the access bits that we cannot see).
/// A larger share finds more of them and takes more faults to do so.
std::uint64_t Service::waiting_pages() const {
  return std::max<std::uint64_t>(pager_->limit() / 8, parts_of_batch_ * kPagesOfPart);
}

void Service::room_was_made() {
  if (!delayed_.empty()) kick();
}

/// Returns whether the next one is wanted soon.
bool Service::tick(std::unique_lock<std::mutex>& lock) {
  reserve_.tick(pager_->counts().came);
  give_idle_buffers_back();
  if (!options_.tick) return false;
  evicting_ = true;
  lock.unlock();
  const bool soon = options_.tick();
  lock.lock();
  evicting_ = false;
  quiet_.notify_all();
  return soon;
}

void Service::evict() {
  std::unique_lock lock(mutex_);
  auto next_tick = std::chrono::steady_clock::now(), next_hope = next_tick;
  auto pause = kTick;
  while (!stopping_) {
    // Where nothing could leave, something may be able to a second later.
    if (!paused_ && pager_->cornered() && std::chrono::steady_clock::now() >= next_hope) {
      pager_->set_cornered(false);
      next_hope = std::chrono::steady_clock::now() + kHope;
    }
    if (!needs_room()) room_.wait_for(lock, pause);
    if (stopping_) break;
    if (paused_) continue;
    if (std::chrono::steady_clock::now() >= next_tick) {
      pause = tick(lock) ? kSoon : kTick;
      next_tick = std::chrono::steady_clock::now() + pause;
    }
    if (wants_samples()) sample(lock);
    if (demotion_buffer_ && !stopping_ && !paused_) demote(lock);
    if (stopping_ || !needs_room()) continue;
    evicting_ = true;
    bool filled = false;
    if (!free_.empty() && pager_->staged() <= waiting_pages()) {
      const std::uint16_t number = free_.front();
      free_.pop_front();
      filled = fill_batch(batches_[number], lock);
      (batches_[number].count > 0 ? lifted_ : free_).push_back(number);
    }
    if (!lifted_.empty() && (pager_->staged() > waiting_pages() || !filled)) {
      empty_oldest(lock);
    } else if (lifted_.empty() && !filled && !held_up_) {
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

/// Keeps room in each slower tier but the lowest, so that what leaves fast memory goes one step down.
void Service::demote(std::unique_lock<std::mutex>& lock) {
  evicting_ = true;
  Demotion demotion;
  for (unsigned tier = 0; tier + 1 < slot_views_.size(); ++tier) {
    for (std::size_t i = 0;
         i < kPartsOfChunk && (slot_views_[tier]->nearly_full() || store_views_[tier]->nearly_full()); ++i) {
      if (stopping_ || paused_ || !pager_->begin_demotion(tier, demotion)) break;
      const auto place = [](Slot slot) { return std::uint64_t{index_of(slot)} * kPart; };
      lock.unlock();
      int cause = store_views_[tier]->read(place(demotion.from), demotion_buffer_->data(), kPart);
      const iovec piece{demotion_buffer_->data(), kPart};
      if (cause == 0) cause = store_views_[tier_of(demotion.to)]->write(place(demotion.to), {&piece, 1});
      lock.lock();
      pager_->demoted(demotion, cause);
      if (cause != 0) break;
    }
  }
  evicting_ = false;
  quiet_.notify_all();
}

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
    // An event that has not been read yet holds up every part, and a fetch its own: that says nothing about
    // whether they can leave.
    held_up_ = step == Pager::Step::again;
    if (step == Pager::Step::none) break;
    if (!held_up_) fruitless_ = step == Pager::Step::done ? 0 : fruitless_ + 1;
    const Stuck stuck = pager_->take_stuck();
    if (stuck.pages != 0 && forked_) {
      lock.unlock();
      make_unshared(stuck);
      lock.lock();
    }
    if (held_up_) {
      lock.unlock();
      sched_yield();
      lock.lock();
    }
    // A fault must not wait for a whole batch.
    give_way(lock);
    if (stopping_ || paused_) break;
  }
  return batch.count == parts_of_batch_;
}

/// Neighbours of the oldest batch go with it, because giving frames back costs a round trip to the listener:
/// no more of them than one batch can hold, nor than a sixty-fourth of fast memory, for what comes back while
/// it is written takes memory twice.
void Service::empty_oldest(std::unique_lock<std::mutex>& lock) {
  const std::uint64_t most = std::min<std::uint64_t>(kChunk / kPage, pager_->limit() / 64);
  const std::uint16_t first = lifted_.front();
  std::uint16_t end = first;
  std::size_t pages = 0;
  do {
    pages += batches_[end++].pages;
    lifted_.pop_front();
  } while (!lifted_.empty() && lifted_.front() == end && pages + batches_[end].pages <= most);
  bool refused = false;
  for (std::uint16_t i = first; i < end; ++i) refused |= settle(batches_[i], lock);
  lock.unlock();
  // Where events are on, this waits until the listener has read of it.
  madvise(batches_[first].frames, (end - first) * kChunk, MADV_DONTNEED);
  lock.lock();
  for (std::uint16_t i = first; i < end; ++i) {
    pager_->released(batches_[i]);
    free_.push_back(i);
  }
  if (refused) pager_->set_cornered(true);
  room_was_made();
}

/// Writes what has to be written. Returns whether a slower tier refused some of it.
bool Service::settle(Batch& batch, std::unique_lock<std::mutex>& lock) {
  Pager::begin_leaving(batch);
  lock.unlock();
  for (std::size_t i = 0; i < batch.count; ++i)
    batch.zero[i] = batch.mask[i] == kAllPages && is_zero(batch.frame(i), kPart);
  lock.lock();
  pager_->plan(batch);
  const std::size_t at_once = frames_at_once();
  lock.unlock();
  write(batch, at_once);
  lock.lock();
  bool refused = false, full = false;
  for (std::size_t i = 0; i < batch.count; ++i) {
    if (batch.cause[i] != 0) (has_lower_store(batch.slot[i]) ? full : refused) = true;
    if (batch.slot[i] != kNoSlot && batch.cause[i] == 0)
      (store_of(batch.slot[i]).is_memory() ? totals_.packed_bytes : totals_.written_bytes) +=
          kPage * count_of(batch.mask[i]);
    while (pager_->written(batch, i) == Pager::Step::again) let_an_event_be_read(lock);
  }
  // The next demotions make room in a store that is not the last one, unless there were none since it was
  // full before.
  const std::uint64_t demoted = pager_->counts().demoted;
  if (full) refused |= std::exchange(demoted_at_refusal_, demoted) == demoted;
  return refused;
}

/// A read that comes while the disk writes waits for that one request. So requests are small, unless so
/// little room is left that faults would soon wait for it: large ones are faster.
std::size_t Service::frames_at_once() const {
  constexpr std::size_t kFew = (128 << 10) / kPart;
  return pager_->resident() + reserve_.pages() / 2 > pager_->limit() ? kPartsOfChunk : kFew;
}

/// Frames whose slots neighbour each other are written together, so many at once.
void Service::write(Batch& batch, std::size_t at_once) {
  std::array<std::uint8_t, kPartsOfChunk> order{};
  std::size_t count = 0;
  for (std::size_t i = 0; i < batch.count; ++i) {
    if (batch.slot[i] != kNoSlot) order[count++] = static_cast<std::uint8_t>(i);
  }
  std::sort(order.begin(), order.begin() + count,
            [&](std::uint8_t a, std::uint8_t b) { return batch.slot[a] < batch.slot[b]; });
  const auto follows = [&](std::size_t a, std::size_t b) {
    return batch.mask[a] == kAllPages && batch.mask[b] == kAllPages &&
           static_cast<std::uint32_t>(batch.slot[b]) == static_cast<std::uint32_t>(batch.slot[a]) + 1;
  };
  for (std::size_t i = 0; i < count;) {
    std::size_t end = i + 1;
    while (end < count && end - i < at_once && follows(order[end - 1], order[end])) ++end;
    write_run(batch, std::span(order).subspan(i, end - i));
    i = end;
  }
}

/// Several frames are whole; a single one may have holes.
void Service::write_run(Batch& batch, std::span<const std::uint8_t> frames) {
  const std::size_t first = frames.front();
  Store& store = store_of(batch.slot[first]);
  const std::uint64_t place = std::uint64_t{index_of(batch.slot[first])} * kPart;
  int cause = 0;
  if (batch.mask[first] == kAllPages) {
    std::array<iovec, kPartsOfChunk> pieces{};
    for (std::size_t i = 0; i < frames.size(); ++i) pieces[i] = {batch.frame(frames[i]), kPart};
    cause = store.write(place, std::span(pieces).first(frames.size()));
  } else {
    each_run(batch.mask[first], [&](std::size_t page, std::size_t pages) {
      const iovec piece{batch.frame(first) + page * kPage, pages * kPage};
      cause = store.write(place + page * kPage, {&piece, 1});
      return cause == 0;
    });
  }
  for (const std::uint8_t i : frames) batch.cause[i] = cause;
}

}  // namespace terrace::pages

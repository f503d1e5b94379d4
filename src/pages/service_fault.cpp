// SPDX-License-Identifier: Apache-2.0
// The workers of the service: how faults are answered (service.hpp).
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "pages/clock.hpp"
#include "pages/service.hpp"

namespace terrace::pages {

namespace {

constexpr std::uint64_t kSpinNs = 150'000;
constexpr std::uint64_t kTurnNs = 30'000;  // a processor was given away for longer than a look takes

}  // namespace

void Service::work(Thread& me) {
  std::unique_lock lock(mutex_);
  for (Pending fault; next_fault(me, fault, lock);) serve(me, fault, lock);
}

bool Service::next_fault(Thread& me, Pending& fault, std::unique_lock<std::mutex>& lock) {
  while (!stopping_) {
    // Somebody must listen before anything else: those who read may be waiting for an event to be read.
    if (!listening_) {
      if (!queue_.empty()) idle_.notify_one();
      return listen(fault, lock);
    }
    if (!queue_.empty()) {
      fault = queue_.front();
      queue_.pop_front();
      return true;
    }
    // One of the workers at most does what nobody waits for.
    if (!promotions_.empty() && !promoting_ && !paused_) {
      promote(me, lock);
      continue;
    }
    ++idle_workers_;
    idle_.wait(lock);
    --idle_workers_;
  }
  return false;
}

bool Service::listen(Pending& fault, std::unique_lock<std::mutex>& lock) {
  listening_ = true;
  std::uint64_t last_event_ns = now_ns();  // of this listener, who was passed the ear by a fault
  while (!stopping_ || grounded_.size() + held_.size() < flights_.size()) {
    if (ring_ && ring_->has_news()) {
      land(lock);
      last_event_ns = now_ns();
    }
    const Event event = userfault_.read();
    if (event.kind != Event::Kind::none) last_event_ns = now_ns();
    if (event.kind == Event::Kind::missing || event.kind == Event::Kind::write) {
      if (answer_or_pass_on({event, last_event_ns}, fault, lock)) break;
    } else if (event.kind != Event::Kind::none) {
      take(event);
    } else {
      // The last read may just have ended: nobody tells a listener twice that it is to stop.
      bool delayed = !delayed_.empty() || stopping_;
      retry_delayed(lock);
      if (ring_ && !ring_->start()) delayed = true;
      // Between attempts others get the lock: they make room, or finish what the attempt waits for.
      lock.unlock();
      wait_for_news(last_event_ns, delayed);
      lock_soon(lock);
    }
  }
  listening_ = false;
  idle_.notify_one();
  return !stopping_;
}

// Where faults come fast, or a read is about to end, sleeping and being woken would take longer than the
// wait: a processor that has gone to sleep needs tens of microseconds. So the listener looks for a while, and
// stops as soon as somebody else has a use for the processor.
void Service::wait_for_news(std::uint64_t last_event_ns, bool delayed) {
  pollfd ready[3] = {{userfault_.descriptor(), POLLIN, 0}, {kick_, POLLIN, 0}, {-1, POLLIN, 0}};
  if (ring_) ready[2].fd = ring_->descriptor();
  const auto has_news = [&] { return (ring_ && ring_->has_news()) || poll(ready, 2, 0) > 0; };
  const std::uint64_t until = last_event_ns + kSpinNs;
  bool news = false;
  for (std::uint64_t before = now_ns(); !delayed && !(news = has_news()) && before < until;) {
    sched_yield();
    const std::uint64_t after = now_ns();
    if (after - before > kTurnNs) break;
    before = after;
  }
  if (!news) poll(ready, 3, delayed ? 1 : -1);
  std::uint64_t ignored;
  if (ready[1].revents != 0 && ::read(kick_, &ignored, sizeof ignored) < 0) errno = 0;
}

/// Others hold the lock for a few microseconds at a time: sleeping for it would take longer.
void Service::lock_soon(std::unique_lock<std::mutex>& lock) {
  constexpr int kTries = 400;
  fault_waits_ = true;
  for (int i = 0; i < kTries && !lock.try_lock(); ++i) __builtin_ia32_pause();
  if (!lock.owns_lock()) lock.lock();
  fault_waits_ = false;
}

/// Whoever works on many parts lets a fault pass between two of them, and a thread of the program that was
/// just given its page have the processor.
void Service::give_way(std::unique_lock<std::mutex>& lock) {
  constexpr int kTries = 400;
  lock.unlock();
  sched_yield();
  for (int i = 0; i < kTries && fault_waits_; ++i) __builtin_ia32_pause();
  lock.lock();
}

/// The memory under management changed.
void Service::take(const Event& event) {
  note_gone(event);
  pager_->changed(event);
}

void Service::note_gone(const Event& event) {
  if (event.kind == Event::Kind::removed) return;
  if (gone_count_ == gone_.size())
    gone_.back() = {0, ~Address{0}};
  else
    gone_[gone_count_++] = {event.address, event.address + event.bytes};
}

/// Returns true where this worker is to serve the fault itself.
bool Service::answer_or_pass_on(const Pending& fault, Pending& mine, std::unique_lock<std::mutex>& lock) {
  Fetch fetch;
  const PartId id = table_.find(fault.event.address);
  if (id != kNoPart && table_[id].state == PartState::fetching && goes_on(id, fault, lock)) return false;
  const bool reads = pager_->reads(id, fault.event);
  const bool flies = reads && can_take_off(table_[id].slot);
  if (reads && !flies && idle_workers_ > 0) return mine = fault, true;
  if (reads && !flies) {
    queue_.push_back(fault);
    return false;
  }
  const std::uint64_t rescues = pager_->counts().rescues;
  const Pager::Step step = pager_->fault(fault.event, fetch);
  if (step == Pager::Step::fetch) {
    take_off(fetch, fault, lock);
  } else if (step == Pager::Step::done) {
    answered(fault);
    if (pager_->counts().rescues > rescues) totals_.rescue_ns += now_ns() - fault.since_ns;
  } else {
    delay(fault, step);
  }
  if (needs_room()) room_.notify_one();
  return false;
}

void Service::delay(Pending fault, Pager::Step step) {
  if (step == Pager::Step::full && !std::exchange(fault.counted, true)) ++totals_.room_waits;
  delayed_.push_back(fault);
}

void Service::retry_delayed(std::unique_lock<std::mutex>& lock) {
  for (std::size_t i = delayed_.size(); i > 0; --i) {
    const Pending fault = delayed_.front();
    delayed_.pop_front();
    Pending mine;
    if (answer_or_pass_on(fault, mine, lock)) {
      queue_.push_back(mine);
      idle_.notify_one();
    }
  }
}

void Service::answered(const Pending& fault) {
  const std::uint64_t took = now_ns() - fault.since_ns;
  totals_.waiting_ns += took;
  totals_.longest_ns = std::max(totals_.longest_ns, took);
}

// Every worker may be here at once, so nobody may be listening: whoever waits for an event also reads. A
// fault that comes instead is left to the others.
void Service::let_an_event_be_read(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  sched_yield();
  lock.lock();
  const Event event = userfault_.read();
  if (event.kind == Event::Kind::missing || event.kind == Event::Kind::write) {
    queue_.push_back({event, now_ns()});
    idle_.notify_one();
  } else if (event.kind != Event::Kind::none) {
    take(event);
  }
}

void Service::serve(Thread& me, const Pending& fault, std::unique_lock<std::mutex>& lock) {
  Fetch fetch;
  const PartId id = table_.find(fault.event.address);
  if (id != kNoPart && table_[id].state == PartState::fetching && goes_on(id, fault, lock)) return;
  Pager::Step step = pager_->fault(fault.event, fetch);
  if (needs_room()) room_.notify_one();
  if (step == Pager::Step::full || step == Pager::Step::again) {
    delay(fault, step);
    kick();
    return;
  }
  me.busy_with = fault.event.address;
  me.busy_since_ns = fault.since_ns;
  if (step == Pager::Step::fetch) read_and_fill(me, fetch, lock);
  me.busy_with = 0;
  answered(fault);
}

void Service::read_and_fill(Thread& me, Fetch& fetch, std::unique_lock<std::mutex>& lock) {
  int cause = 0;
  do {
    lock.unlock();
    cause = read(fetch, me.buffer->data());
    lock.lock();
  } while (fill_in(fetch, me.buffer->data(), cause, lock) == Pager::Step::fetch);
}

/// Gives the program what a read brought.
Pager::Step Service::fill_in(Fetch& fetch, const std::byte* data, int cause,
                             std::unique_lock<std::mutex>& lock) {
  const std::uint64_t bytes =
      fetch.pages == kAllPages ? fetch.count * kPart : count_of(read_for(fetch)) * kPage;
  const bool unpacked = store_of(fetch.slot).is_memory();
  (unpacked ? totals_.unpacked_bytes : totals_.read_bytes) += bytes;
  totals_.unpacked_faults += unpacked;
  if (cause != 0 && fetch.count == 1) tell_loss(fetch, cause);
  Pager::Step step = Pager::Step::again;
  while ((step = pager_->fetched(fetch, data, cause)) == Pager::Step::again) let_an_event_be_read(lock);
  return step;
}

void Service::promote(Thread& me, std::unique_lock<std::mutex>& lock) {
  promoting_ = true;
  const Address part = promotions_.front();
  promotions_.pop_front();
  Fetch fetch;
  if (pager_->promote(part, fetch) == Pager::Step::fetch) read_and_fill(me, fetch, lock);
  promoting_ = false;
}

/// One request with pages in its middle that nobody needs takes a disk less than two without them.
PageMask Service::read_for(const Fetch& fetch) const {
  return store_of(fetch.slot).is_memory() ? fetch.pages : span_of(fetch.pages);
}

int Service::read(const Fetch& fetch, std::byte* to) {
  Store& store = store_of(fetch.slot);
  const std::uint64_t place = std::uint64_t{index_of(fetch.slot)} * kPart;
  if (fetch.pages == kAllPages) return store.read(place, to, fetch.count * kPart);
  int cause = 0;
  each_run(read_for(fetch), [&](std::size_t first, std::size_t count) {
    cause = store.read(place + first * kPage, to + first * kPage, count * kPage);
    return cause == 0;
  });
  return cause;
}

// The sentence must be out before the touching thread is ended, so it is told before the pager knows.
void Service::tell_loss(const Fetch& fetch, int cause) {
  if (std::exchange(told_, true)) return;
  const Store& store = store_of(fetch.slot);
  const std::uint64_t place = std::uint64_t{index_of(fetch.slot)} * kPart;
  loss_ = fmt::format("a page of memory could not be read back from {}{}{} at offset {} ({}): check the disk",
                      store.name(), store.path().empty() ? "" : ", path ", store.path(), place,
                      std::strerror(cause));
  if (options_.lost) options_.lost(loss_);
}

}  // namespace terrace::pages

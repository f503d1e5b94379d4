// SPDX-License-Identifier: Apache-2.0
// How a service lives through a fork (service.hpp).
#include <sys/eventfd.h>
#include <unistd.h>

#include "pages/out_of_the_way.hpp"
#include "pages/service.hpp"

namespace terrace::pages {

void Service::pause() {
  std::unique_lock lock(mutex_);
  quiet_.wait(lock, [&] { return !paused_; });
  paused_ = true;
  quiet_.wait(lock, [&] { return !evicting_; });
  // Nobody makes room meanwhile, so no fault may wait for it.
  pager_->set_cornered(true);
  room_was_made();
}

void Service::before_fork() {
  const std::lock_guard lock(mutex_);
  pager_->hold_slots();
  forked_ = true;
}

void Service::after_fork_in_parent() {
  {
    const std::lock_guard lock(mutex_);
    pager_->stop_holding();
    paused_ = false;
    pager_->set_cornered(false);
  }
  quiet_.notify_all();
  room_.notify_one();
}

Result<void> Service::reopen_in_child() {
  // Whoever held or waited for these is not in this process, and may have been about to change them.
  new (&mutex_) std::mutex;
  for (std::condition_variable* waiters : {&idle_, &room_, &quiet_}) new (waiters) std::condition_variable;
  for (std::deque<Pending>* faults : {&queue_, &delayed_}) new (faults) std::deque<Pending>;
  new (&promotions_) std::deque<Address>;
  new (&loss_) std::string;
  idle_workers_ = 0;
  fault_waits_ = false;
  gone_count_ = 0;
  listening_ = stopping_ = paused_ = evicting_ = told_ = promoting_ = false;
  totals_ = {};
  auto userfault = Userfault::open(options_.ownership, options_.leaving);
  if (!userfault) return userfault.error();
  userfault_ = *std::move(userfault);
  if (userfault_.manage_staging(reinterpret_cast<Address>(staging_->data()), staging_->size()) != 0)
    return Error{ErrorCode::unsupported, "userfaultfd refused memory in a child"};
  close(kick_);
  kick_ = out_of_the_way(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  prepare_flights();
  for (SlotTable* slots : slot_views_) slots->close();
  for (Store* store : store_views_) store->go_on_in_child();
  pager_->go_on_in_child();
  return {};
}

void Service::restart_in_child() {
  threads_.clear();
  start_threads();
}

// Opening a file may use the program's memory, so it has to wait until that is served.
void Service::open_store_in_child() {
  auto store = stores_.size() < kMostTiers ? stores_.back()->for_a_child() : nullptr;
  if (store == nullptr) return;
  auto slots = std::make_unique<SlotTable>(store->slots());
  const std::lock_guard lock(mutex_);
  store_views_.push_back(store.get());
  slot_views_.push_back(slots.get());
  stores_.push_back(std::move(store));
  slots_.push_back(std::move(slots));
  pager_->set_cornered(false);
}

void Service::let_slots_go() {
  const std::lock_guard lock(mutex_);
  pager_->let_slots_go();
}

}  // namespace terrace::pages

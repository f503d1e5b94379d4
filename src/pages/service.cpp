// SPDX-License-Identifier: Apache-2.0
#include "pages/service.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "pages/clock.hpp"
#include "pages/out_of_the_way.hpp"
#include "pages/service_sampling.hpp"
#include "terrace/error.hpp"

namespace terrace::pages {
namespace {

constexpr std::size_t kStack = 256 << 10;
constexpr std::size_t kLeastParts = 16;
constexpr std::size_t kMostBatches = 1024;
constexpr double kFirstGuess = 30e-6;  // seconds of a scan of one sample
constexpr std::uint64_t kOverdue = 1'000'000'000;

}  // namespace

Result<std::unique_ptr<Service>> Service::start(std::vector<std::unique_ptr<Store>> stores,
                                                ServiceOptions options) {
  check(!stores.empty() && options.workers >= 2, "a service has a store and two workers");
  auto userfault = Userfault::open(options.ownership, options.leaving);
  if (!userfault) return userfault.error();
  std::unique_ptr<Service> service(new Service(std::move(stores), std::move(options), *std::move(userfault)));
  if (auto prepared = service->prepare(); !prepared) return prepared.error();
  return service;
}

Service::Service(std::vector<std::unique_ptr<Store>> stores, ServiceOptions options, Userfault userfault)
    : options_(std::move(options)),
      stores_(std::move(stores)),
      userfault_(std::move(userfault)),
      table_(options_.most_bytes) {}

Result<void> Service::prepare() {
  const std::size_t limit_parts = options_.fast_bytes / kPart;
  if (limit_parts < kLeastParts)
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} of fast memory is too little: ask for at least {}",
                             readable(Bytes{options_.fast_bytes}), readable(Bytes{kLeastParts * kPart}))};
  auto victims = make_victims(options_.policy, table_);
  if (!victims) return victims.error();
  victims_ = *std::move(victims);
  // Workers look these up without the lock, so they must never be moved to larger memory.
  store_views_.reserve(kMostTiers);
  slot_views_.reserve(kMostTiers);
  for (const auto& store : stores_) {
    slots_.push_back(std::make_unique<SlotTable>(store->slots()));
    store_views_.push_back(store.get());
    slot_views_.push_back(slots_.back().get());
  }
  // A sixteenth at most is kept free for faults. Some of it waits in staging for its second chance
  // (waiting_pages); where parts of few pages leave, that takes more batches: there are enough for parts of
  // two pages.
  parts_of_batch_ = std::clamp<std::size_t>(limit_parts / 64, 1, kPartsOfChunk);
  const std::size_t least = std::max<std::size_t>(limit_parts / 128, 2) * kPagesOfPart;
  reserve_ = {least, std::max(limit_parts / 16 * kPagesOfPart, least)};
  const std::size_t batch_count = std::min<std::size_t>(2 * limit_parts / parts_of_batch_, kMostBatches) + 4;
  staging_ = std::make_unique<Reserved<std::byte>>(batch_count * kChunk, "frames");
  if (const int cause =
          userfault_.manage_staging(reinterpret_cast<Address>(staging_->data()), batch_count * kChunk))
    return Error{ErrorCode::unsupported,
                 fmt::format("userfaultfd refused memory ({})", std::strerror(cause))};
  batches_.resize(batch_count);
  for (std::size_t i = 0; i < batch_count; ++i) {
    batches_[i].number = static_cast<std::uint16_t>(i);
    batches_[i].frames = staging_->data() + i * kChunk;
    free_.push_back(static_cast<std::uint16_t>(i));
  }
  if (stores_.size() > 1) demotion_buffer_ = std::make_unique<Reserved<std::byte>>(kPart, "a demoted part");
  if (options_.log_faults) log_ = std::make_unique<AccessLog>();
  pager_ = std::make_unique<Pager>(
      Pager::Parts{userfault_, table_, *victims_, store_views_, slot_views_, batches_, log_.get()},
      limit_parts * kPagesOfPart, options_.bringing);
  kick_ = out_of_the_way(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (kick_ < 0) return Error{ErrorCode::unsupported, "no more files can be opened: raise `ulimit -n`"};
  if (options_.policy == "keeper" && options_.overhead > 0) {
    ProfilingOptions profiling;
    profiling.interval_seconds = options_.interval_seconds;
    profiling.overhead = options_.overhead;
    profiling.seconds_of_a_scan = kFirstGuess;
    sampling_ = std::make_unique<Sampling>(profiling, std::max<std::size_t>(limit_parts / 16, 1));
    victims_->ask_samples([this](Address address) { return sampling_->stretches.hotness(address / kPage); });
  }
  prepare_flights();
  start_threads();
  return {};
}

void Service::start_threads() {
  for (unsigned i = 0; i < options_.workers; ++i) start_thread(Thread::Role::works);
  start_thread(Thread::Role::evicts);
  own_wakeful_.reset();
  wakeful_ = nullptr;
  if (!ring_ || sysconf(_SC_NPROCESSORS_ONLN) < 2) return;
  wakeful_ = options_.wakeful;
  if (wakeful_ != nullptr) return;
  wakeful_ = &own_wakeful_.emplace();
  start_thread(Thread::Role::stays_awake);
}

void Service::start_thread(Thread::Role role) {
  Thread& thread = threads_.emplace_back();
  thread.service = this;
  thread.role = role;
  thread.stack = std::make_unique<Reserved<std::byte>>(kStack, "a thread's stack");
  thread.buffer = std::make_unique<Reserved<std::byte>>(kChunk, "a thread's buffer");
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, thread.stack->data(), kStack);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int cause = pthread_create(&thread.handle, &attributes, run_thread, &thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (cause != 0) {
    threads_.pop_back();
    throw EnvironmentError(
        fmt::format("no thread could be started ({}): raise `ulimit -u`", std::strerror(cause)),
        {"", "", 0, cause});
  }
}

namespace {

/// A thread that others wait for runs briefly and often: since Linux 6.12 a short slice gets it the processor
/// sooner. Older kernels ignore the wish.
void ask_for_short_slices() {
  struct {
    std::uint32_t size = 48, policy = SCHED_OTHER;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime = 100'000, deadline = 0, period = 0;
  } wish;
  static_assert(sizeof wish == 48);
  syscall(SYS_sched_setattr, 0, &wish, 0);
}

}  // namespace

void* Service::run_thread(void* thread) {
  auto& me = *static_cast<Thread*>(thread);
  switch (me.role) {
    case Thread::Role::works:
      ask_for_short_slices();
      me.service->work(me);
      break;
    case Thread::Role::evicts:
      ask_for_short_slices();
      me.service->evict();
      break;
    case Thread::Role::stays_awake:
      me.service->own_wakeful_->run();
      break;
  }
  return nullptr;
}

Service::~Service() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  idle_.notify_all();
  room_.notify_all();
  if (kick_ >= 0) kick();
  if (own_wakeful_) own_wakeful_->stop();
  for (Thread& thread : threads_) pthread_join(thread.handle, nullptr);
  if (kick_ >= 0) close(kick_);
}

void Service::kick() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto ignored = ::write(kick_, &one, sizeof one);
}

void Service::found_present(Address part, PageMask pages, Finder finder) {
  const std::lock_guard lock(mutex_);
  finder == Finder::child ? pager_->found_in_child(part, pages) : pager_->found_present(part, pages);
}

std::size_t Service::take_gone(GoneRanges& to) {
  const std::lock_guard lock(mutex_);
  std::copy_n(gone_.begin(), gone_count_, to.begin());
  return std::exchange(gone_count_, 0);
}

void Service::hint(Address start, std::size_t bytes, Hint hint) {
  const std::lock_guard lock(mutex_);
  if (!victims_->follows_hints()) return;
  // No more than half of fast memory: the rest is in use.
  const std::size_t most = pager_->limit() / kPagesOfPart / 2;
  table_.each_part(start, start + bytes, [&](PartId id) {
    const Part& part = table_[id];
    if (hint == Hint::not_wanted_soon && part.listed) victims_->not_wanted_soon(id);
    if (hint == Hint::wanted_soon && part.stored != 0 && part.present == 0 && promotions_.size() < most)
      promotions_.push_back(table_.address(id));
  });
  if (!promotions_.empty()) idle_.notify_one();
}

void Service::discard(Address start, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  madvise(reinterpret_cast<void*>(start), bytes, MADV_DONTNEED);
  pager_->changed({Event::Kind::removed, start, 0, bytes});
  pager_->set_cornered(false);
}

std::span<Address> Service::take_faults() {
  const std::lock_guard lock(mutex_);
  return log_->take();
}

std::uint64_t Service::resident_bytes() {
  const std::lock_guard lock(mutex_);
  return pager_->resident() * kPage;
}

ServiceStatistics Service::statistics() {
  const std::lock_guard lock(mutex_);
  ServiceStatistics result = totals_;
  result.counts = pager_->counts();
  result.resident_pages = pager_->resident();
  result.limit_pages = pager_->limit();
  for (const auto& slots : slots_) result.used_slots += slots->used();
  for (const Store* store : store_views_) result.packed_memory += store->memory_in_use();
  result.cornered = pager_->cornered();
  const std::uint64_t now = now_ns();
  const auto look = [&](Address address, std::uint64_t since) {
    if (address != 0 && now - since > kOverdue) result.overdue_address = address;
  };
  for (const Thread& thread : threads_) look(thread.busy_with, thread.busy_since_ns);
  for (const Pending& fault : queue_) look(fault.event.address, fault.since_ns);
  for (const Pending& fault : delayed_) look(fault.event.address, fault.since_ns);
  for (const Flight& flight : flights_) {
    if (flight.pieces > 0) look(flight.fault.event.address, flight.fault.since_ns);
  }
  return result;
}

void Service::each_descriptor(const std::function<void(int)>& visit) const {
  visit(userfault_.descriptor());
  visit(kick_);
  if (ring_) visit(ring_->descriptor());
  for (const Store* store : store_views_) visit(store->descriptor());
}

void Service::set_limit(std::size_t bytes) {
  // What waits in staging is resident, too: below this everything could be there, and faults wait for ever.
  const std::size_t least = kLeastParts + 2 * (reserve_.most() / kPagesOfPart + parts_of_batch_);
  const std::lock_guard lock(mutex_);
  pager_->set_limit(std::max(bytes / kPart, least) * kPagesOfPart);
}

void Service::set_room_of_memory_stores(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  for (Store* store : store_views_) {
    if (store->is_memory()) store->set_room(bytes);
  }
}

std::string Service::loss() {
  const std::lock_guard lock(mutex_);
  return loss_;
}

std::string Service::check_records() {
  const std::lock_guard lock(mutex_);
  return pager_->check_records();
}

}  // namespace terrace::pages

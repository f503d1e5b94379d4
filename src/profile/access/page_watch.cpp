// SPDX-License-Identifier: Apache-2.0
#include "profile/access/page_watch.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <thread>
#include <utility>

#include "base/check.hpp"
#include "base/last_cache.hpp"

namespace terrace {
namespace {

std::size_t page() {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

/// One instruction can touch this many pages: a gather of sixteen elements, each across a border, and more.
constexpr std::size_t kPagesOfOneInstruction = 64;

}  // namespace

/// Handlers run with all signals blocked. So does everyone else who holds this: a handler that interrupted
/// the holder would wait for it forever.
class PageWatch::Lock {
 public:
  enum class Where { program, handler };
  Lock(std::atomic_flag& busy, Where where) : busy_(busy), where_(where) {
    if (where_ == Where::program) {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    while (busy_.test_and_set(std::memory_order_acquire)) sched_yield();
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() {
    busy_.clear(std::memory_order_release);
    if (where_ == Where::program) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  std::atomic_flag& busy_;
  const Where where_;
  sigset_t before_ = {};
};

Result<std::unique_ptr<PageWatch>> PageWatch::start(Bytes window) {
  page();  // the first call is not for a handler
  std::unique_ptr<PageWatch> watch(new PageWatch(window));
  auto hook = FaultHook::install(*watch);
  if (!hook) return hook.error();
  watch->hook_.emplace(*std::move(hook));
  return watch;
}

PageWatch::PageWatch(Bytes window)
    : least_units_(kPagesOfOneInstruction * std::max(1U, std::thread::hardware_concurrency())),
      window_pages_(
          std::max<std::size_t>((window > Bytes{} ? window : last_cache()).count / page(), least_units_)) {}

PageWatch::~PageWatch() {
  {
    const Lock lock(busy_, Lock::Where::program);
    for (const auto& area : areas_) open(*area);
  }
  hook_.reset();
}

Bytes PageWatch::window() const { return {window_pages_ * page()}; }

void PageWatch::add(std::span<std::byte> area, std::size_t pages_per_fault) {
  check(!area.empty() && area.size() % page() == 0 &&
            reinterpret_cast<std::uintptr_t>(area.data()) % page() == 0,
        "an area is whole pages, at least one");
  check(pages_per_fault > 0, "a fault opens at least one page");
  const std::lock_guard changing(changing_);
  const std::size_t pages = area.size() / page();
  auto added = std::make_unique<Area>(Area{area.data(), pages, pages_per_fault, {}, {}});
  added->units.resize((pages + pages_per_fault - 1) / pages_per_fault);
  const auto after =
      std::upper_bound(areas_.begin(), areas_.end(), area.data(),
                       [](const std::byte* at, const auto& other) { return at < other->begin; });
  check(
      (after == areas_.end() || area.data() + area.size() <= (*after)->begin) && find(area.data()) == nullptr,
      "a page is in one area");
  const auto index = after - areas_.begin();
  reserve(added->units.size());
  const Lock lock(busy_, Lock::Where::program);
  arm(*added);
  areas_.insert(areas_.begin() + index, std::move(added));
}

/// Makes room for one more area with that many units, out of reach of the handlers, who may not wait for it.
void PageWatch::reserve(std::size_t units) {
  std::size_t all = units;
  for (const auto& area : areas_) all += area->units.size();
  if (all <= ring_.size() && areas_.size() < areas_.capacity()) return;
  std::vector<Opened> ring(all * 2), leaving(all * 2);
  std::vector<std::unique_ptr<Area>> areas;
  areas.reserve(areas_.size() * 2 + 1);
  const Lock lock(busy_, Lock::Where::program);
  for (std::size_t i = 0; i < open_units_; ++i) ring[i] = ring_[(oldest_ + i) % ring_.size()];
  oldest_ = 0;
  ring_.swap(ring);
  leaving_.swap(leaving);
  std::move(areas_.begin(), areas_.end(), std::back_inserter(areas));
  areas_.swap(areas);
}

PageAccesses PageWatch::take(const std::byte* area) {
  const std::lock_guard changing(changing_);
  const Lock lock(busy_, Lock::Where::program);
  Area& one = **place(area);
  return std::exchange(one.counts, PageAccesses{0, 0, one.counts.complete});
}

PageAccesses PageWatch::remove(const std::byte* area) {
  const std::lock_guard changing(changing_);
  std::unique_ptr<Area> removed;
  {
    const Lock lock(busy_, Lock::Where::program);
    const auto found = areas_.begin() + (place(area) - areas_.begin());
    removed = std::move(*found);
    areas_.erase(found);
    open(*removed);
    forget(*removed);
  }
  return removed->counts;
}

void PageWatch::arm() {
  const Lock lock(busy_, Lock::Where::program);
  for (const auto& area : areas_) {
    if (area->counts.complete) arm(*area);
  }
  open_units_ = open_pages_ = 0;
}

bool PageWatch::on_fault(const std::byte* address, Access access) noexcept {
  const Lock lock(busy_, Lock::Where::handler);
  Area* const area = find(address);
  if (area == nullptr) return false;
  const std::size_t unit = static_cast<std::size_t>(address - area->begin) / (area->pages_per_unit * page());
  const State state = area->units[unit];
  if (state == State::armed) remember(*area, unit);
  if (access == Access::write && state != State::writable) {
    area->counts.writes += pages_of(*area, unit);
    area->units[unit] = State::writable;
  } else if (access == Access::read && state == State::armed) {
    area->counts.reads += pages_of(*area, unit);
    area->units[unit] = State::readable;
  }
  // Also where another thread was first and there is nothing to count: the page is open when we return.
  return protect(*area, unit, 1, area->units[unit]);
}

PageWatch::Area* PageWatch::find(const std::byte* address) const {
  const auto after = std::upper_bound(areas_.begin(), areas_.end(), address,
                                      [](const std::byte* at, const auto& area) { return at < area->begin; });
  if (after == areas_.begin()) return nullptr;
  Area* const area = (after - 1)->get();
  return address < area->begin + area->pages * page() ? area : nullptr;
}

std::vector<std::unique_ptr<PageWatch::Area>>::const_iterator PageWatch::place(const std::byte* area) const {
  const auto found =
      std::find_if(areas_.begin(), areas_.end(), [area](const auto& one) { return one->begin == area; });
  check(found != areas_.end(), "the area is watched");
  return found;
}

std::size_t PageWatch::pages_of(const Area& area, std::size_t unit) {
  return std::min(area.pages_per_unit, area.pages - unit * area.pages_per_unit);
}

bool PageWatch::protect(Area& area, std::size_t first, std::size_t count, State state) {
  const int allowed = state == State::armed      ? PROT_NONE
                      : state == State::readable ? PROT_READ
                                                 : PROT_READ | PROT_WRITE;
  const std::size_t unit = area.pages_per_unit * page(), end = area.pages * page();
  const std::size_t from = first * unit, to = std::min((first + count) * unit, end);
  return mprotect(area.begin + from, to - from, allowed) == 0 || give_up(area);
}

/// The system splits its own books at every change of protection and has a limit to them; reserved huge pages
/// cannot be split at all. From here on the area is open, and its counts say that there were more.
bool PageWatch::give_up(Area& area) {
  area.counts.complete = false;
  std::fill(area.units.begin(), area.units.end(), State::writable);
  return mprotect(area.begin, area.pages * page(), PROT_READ | PROT_WRITE) == 0;
}

void PageWatch::arm(Area& area) {
  std::fill(area.units.begin(), area.units.end(), State::armed);
  protect(area, 0, area.units.size(), State::armed);
}

void PageWatch::open(Area& area) {
  std::fill(area.units.begin(), area.units.end(), State::writable);
  mprotect(area.begin, area.pages * page(), PROT_READ | PROT_WRITE);
}

void PageWatch::remember(Area& area, std::size_t unit) {
  const std::size_t pages = pages_of(area, unit);
  if (open_pages_ + pages > window_pages_) make_room(pages);
  ring_[(oldest_ + open_units_++) % ring_.size()] = {&area, unit};
  open_pages_ += pages;
}

/// An eighth of the window at once, so that neighbours are armed by one call.
void PageWatch::make_room(std::size_t pages) {
  const std::size_t aim = window_pages_ - std::min(window_pages_, std::max(pages, window_pages_ / 8));
  std::size_t count = 0;
  while (open_pages_ > aim && open_units_ >= least_units_) {
    const Opened one = ring_[oldest_];
    oldest_ = (oldest_ + 1) % ring_.size();
    --open_units_;
    open_pages_ -= pages_of(*one.area, one.unit);
    if (one.area->counts.complete) leaving_[count++] = one;
  }
  arm_again({leaving_.data(), count});
}

void PageWatch::arm_again(std::span<Opened> units) {
  std::sort(units.begin(), units.end(), [](const Opened& a, const Opened& b) {
    return a.area != b.area ? a.area->begin < b.area->begin : a.unit < b.unit;
  });
  for (auto run = units.begin(); run != units.end();) {
    auto end = run;
    Area& area = *run->area;
    const std::size_t first = run->unit;
    while (end != units.end() && end->area == &area && end->unit - first == std::size_t(end - run)) ++end;
    if (area.counts.complete) {
      for (auto one = run; one != end; ++one) area.units[one->unit] = State::armed;
      protect(area, first, std::size_t(end - run), State::armed);
    }
    run = end;
  }
}

/// Forgets the open units of this area.
void PageWatch::forget(const Area& area) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < open_units_; ++i) {
    const Opened one = ring_[(oldest_ + i) % ring_.size()];
    if (one.area != &area) {
      ring_[(oldest_ + kept++) % ring_.size()] = one;
    } else {
      open_pages_ -= pages_of(area, one.unit);
    }
  }
  open_units_ = kept;
}

}  // namespace terrace

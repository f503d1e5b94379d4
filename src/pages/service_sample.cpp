// SPDX-License-Identifier: Apache-2.0
// The sampler of the service: which memory is in use, found within a bounded share of the time (HM-Keeper,
// 002 section 8.4; stretches.hpp).
//
// There is no access bit to read here. A sample is taken out of the program instead, and a scan sees whether
// somebody wanted it back: for a page in use that is one fault, and nothing for others. A sample on a slower
// tier was referenced if it came back by itself. So a scan has a price that can be measured, and eq. 8.1 says
// how many samples there may be.
#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <optional>
#include <vector>

#include "pages/clock.hpp"
#include "pages/service_sampling.hpp"

namespace terrace::pages {

namespace {

constexpr std::size_t kFreeBatches = 4;  // that evictions can count on

}  // namespace

bool Service::wants_samples() const {
  if (!sampling_ || paused_) return false;
  if (options_.sample_always || sampling_->armed || sampling_->scans_done > 0) return true;
  return std::any_of(slots_.begin(), slots_.end(), [](const auto& slots) { return slots->used() > 0; });
}

/// What a thread loses to a fault that is answered at once: the wait from message to answer, as measured, and
/// the way into the kernel and back.
std::uint64_t Service::nanoseconds_of_a_fault() const {
  constexpr std::uint64_t kTrap = 10'000;
  const std::uint64_t rescues = pager_->counts().rescues;
  return kTrap + (rescues > 0 ? totals_.rescue_ns / rescues : kTrap);
}

/// One step where it is time for one. Its price is this thread's work and the waiting of others; that it
/// waits for its turn itself costs nobody anything.
void Service::sample(std::unique_lock<std::mutex>& lock) {
  const std::uint64_t now = now_ns();
  Sampling& mine = *sampling_;
  if (now < mine.next_ns) return;
  evicting_ = true;
  try {
    if (mine.armed) {
      end_scan(lock);
      mine.next_ns = mine.next_scan_ns;
    } else {
      const auto after = [&](double seconds) { return now + static_cast<std::uint64_t>(seconds * 1e9); };
      mine.next_scan_ns = after(mine.options.interval_seconds / mine.options.scans);
      mine.next_ns = after(mine.window.seconds());
      if (mine.scans_done == 0) begin_samples();
      arm_samples(lock);
    }
  } catch (const std::bad_alloc&) {
    mine.next_ns = ~std::uint64_t{0};  // samples are not worth a program's end
  }
  evicting_ = false;
  quiet_.notify_all();
}

void Service::end_scan(std::unique_lock<std::mutex>& lock) {
  Sampling& mine = *sampling_;
  const std::uint64_t hot_before = totals_.sampled_hot, work_before = own_work_ns();
  check_samples();
  return_samples(lock);
  mine.armed = false;
  const std::uint64_t waited = (totals_.sampled_hot - hot_before) * nanoseconds_of_a_fault();
  const std::uint64_t spent = mine.arming_ns + own_work_ns() - work_before + waited;
  totals_.sampling_ns += spent;
  mine.allowance.scanned(mine.lifted.size(), static_cast<double>(spent) * 1e-9);
  if (++mine.scans_done == mine.options.scans) end_samples();
}

void Service::spend(std::uint64_t nanoseconds) {
  totals_.sampling_ns += nanoseconds;
  sampling_->allowance.spend(static_cast<double>(nanoseconds) * 1e-9);
}

void Service::begin_samples() {
  const std::uint64_t work_before = own_work_ns();
  Sampling& mine = *sampling_;
  mine.allowance.begin_interval();
  mine.stretches.set_limit(std::min(mine.allowance.samples_of_interval(), mine.most));
  learn_chunks();
  mine.stretches.begin_interval();
  mine.lifted.reserve(mine.most);
  mine.absent.reserve(2 * mine.most);
  mine.batches.reserve(mine.most);
  spend(own_work_ns() - work_before);
}

/// Memory that came or went since the last interval.
void Service::learn_chunks() {
  Sampling& mine = *sampling_;
  std::vector<Address> chunks;
  chunks.reserve(table_.chunks());
  table_.each_chunk([&](Address start) { chunks.push_back(start); });
  std::sort(chunks.begin(), chunks.end());
  const auto each_run_of = [](const std::vector<Address>& all, const std::vector<Address>& others,
                              auto visit) {
    std::vector<Address> only;
    std::set_difference(all.begin(), all.end(), others.begin(), others.end(), std::back_inserter(only));
    for (std::size_t i = 0; i < only.size();) {
      std::size_t end = i + 1;
      while (end < only.size() && only[end] == only[end - 1] + kChunk) ++end;
      visit(only[i] / kPage, (end - i) * (kChunk / kPage));
      i = end;
    }
  };
  each_run_of(mine.chunks, chunks,
              [&](std::uint64_t page, std::uint64_t count) { mine.stretches.remove(page, count); });
  each_run_of(chunks, mine.chunks,
              [&](std::uint64_t page, std::uint64_t count) { mine.stretches.add(page, count, 0); });
  mine.chunks = std::move(chunks);
}

void Service::arm_samples(std::unique_lock<std::mutex>& lock) {
  Sampling& mine = *sampling_;
  const std::uint64_t work_before = own_work_ns();
  const std::size_t affordable = mine.allowance.samples_of_scan();
  mine.absent.clear();
  mine.lifted.clear();
  mine.armed = true;
  mine.arming_ns = 0;
  mine.pages = mine.pages_here = 0;
  for (const Stretch& stretch : mine.stretches.all()) {
    for (const Sample& sample : stretch.samples) {
      const PartId id = table_.find(sample.page * kPage);
      if (!pager_->can_be_sampled(id)) {
        const bool is_absent = id == kNoPart || pager_->is_away(id);
        if (is_absent && mine.absent.size() < mine.absent.capacity()) {
          mine.absent.push_back(sample.page);
          if (id != kNoPart) mine.pages += count_of(table_[id].stored);
        }
        continue;
      }
      if (mine.lifted.size() >= affordable) continue;
      if (!mine.allowance.may_go_on(static_cast<double>(mine.arming_ns) * 1e-9)) continue;
      if (mine.batches.empty() || batches_[mine.batches.back()].count >= parts_of_batch_) {
        if (free_.size() <= kFreeBatches) return;
        mine.batches.push_back(free_.front());
        free_.pop_front();
        batches_[mine.batches.back()].samples = true;
      }
      const Part before = table_[id];
      if (pager_->lift(batches_[mine.batches.back()], id) == Pager::Step::done) {
        mine.lifted.push_back(id);
        mine.pages_here += count_of(before.present);
        mine.pages += count_of(static_cast<PageMask>(before.present | before.stored));
      }
      pager_->take_stuck();
      ++totals_.samples;
      mine.arming_ns = own_work_ns() - work_before;
      // A fault must not wait for all samples.
      give_way(lock);
      if (stopping_ || paused_) return;
    }
  }
}

void Service::check_samples() {
  Sampling& mine = *sampling_;
  std::sort(mine.absent.begin(), mine.absent.end());
  std::sort(mine.lifted.begin(), mine.lifted.end());
  std::size_t in_use = 0;
  const std::size_t asked = mine.stretches.scan([&](std::uint64_t page) -> std::optional<bool> {
    const PartId id = table_.find(page * kPage);
    const bool lifted = std::binary_search(mine.lifted.begin(), mine.lifted.end(), id);
    if (!lifted && !std::binary_search(mine.absent.begin(), mine.absent.end(), page)) return std::nullopt;
    const bool is_back = pager_->can_be_sampled(id);  // or it is in its frame still, or has left
    totals_.sampled_hot += lifted && is_back;
    in_use += is_back;
    return is_back;
  });
  mine.window.scanned(asked, in_use,
                      static_cast<double>(mine.pages_here) / static_cast<double>(std::max(mine.pages, 1U)));
}

/// What nobody wanted goes back, a batch at a time: pages that were clean are copied, so that they stay
/// clean, and take memory twice until their frames are released.
void Service::return_samples(std::unique_lock<std::mutex>& lock) {
  for (const std::uint16_t number : sampling_->batches) {
    Batch& batch = batches_[number];
    bool all = true;
    for (std::size_t i = 0; i < batch.count; ++i) {
      while (pager_->return_sample(batch, i) == Pager::Step::again) let_an_event_be_read(lock);
      all &= batch.owner[i] == kNoPart;
    }
    if (!all) {
      // The system had no memory for what was to go back.
      pager_->evict_samples(batch);
      lifted_.push_back(number);
      continue;
    }
    lock.unlock();
    madvise(batch.frames, kChunk, MADV_DONTNEED);
    lock.lock();
    pager_->released(batch);
    free_.push_back(number);
  }
  sampling_->batches.clear();
}

void Service::end_samples() {
  const std::uint64_t work_before = own_work_ns();
  Sampling& mine = *sampling_;
  mine.stretches.end_interval();
  promote_hot();
  mine.scans_done = 0;
  ++totals_.intervals;
  totals_.stretches = mine.stretches.all().size();
  spend(own_work_ns() - work_before);
  totals_.largest_overhead = std::max(totals_.largest_overhead, mine.allowance.share());
}

/// Hot memory that is on a slower tier is fetched before somebody waits for it, the hottest first: straight
/// to the fastest tier, and no more than there is room for without driving others out (002 section 8.5).
void Service::promote_hot() {
  constexpr double kPagesPerSecond = 200e6 / 10 / kPage;  // 200 MB in ten seconds
  Sampling& mine = *sampling_;
  const std::uint64_t room =
      pager_->limit() > pager_->resident() ? (pager_->limit() - pager_->resident()) / 2 : 0;
  auto left = std::min(room, static_cast<std::uint64_t>(kPagesPerSecond * mine.options.interval_seconds));
  std::vector<const Stretch*> hot;
  for (const Stretch& stretch : mine.stretches.all()) {
    if (stretch.weighted > mine.stretches.split_threshold()) hot.push_back(&stretch);
  }
  std::sort(hot.begin(), hot.end(),
            [](const Stretch* a, const Stretch* b) { return a->weighted > b->weighted; });
  promotions_.clear();
  for (const Stretch* stretch : hot) {
    table_.each_part(stretch->first * kPage, stretch->end() * kPage, [&](PartId id) {
      const Part& part = table_[id];
      if (left < kPagesOfPart || part.stored == 0 || part.present != 0) return;
      left -= kPagesOfPart;
      promotions_.push_back(table_.address(id));
    });
  }
  if (!promotions_.empty()) idle_.notify_one();
}

double Service::hotness(Address address) {
  const std::lock_guard lock(mutex_);
  return sampling_ ? sampling_->stretches.hotness(address / kPage) : -1;
}

}  // namespace terrace::pages

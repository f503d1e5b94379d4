// SPDX-License-Identifier: Apache-2.0
#include "terrace/paged_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>

#include "base/check.hpp"
#include "pages/service.hpp"
#include "tiers/mapping.hpp"

namespace terrace {

using pages::kPage;

struct PagedMemory::State {
  Mapping memory;  // declared first: the service ends before its memory goes
  Bytes size;
  std::unique_ptr<pages::Service> service;
};

namespace {

Result<std::vector<std::unique_ptr<pages::Store>>> open_stores(const std::vector<std::string>& specs) {
  std::vector<std::unique_ptr<pages::Store>> stores;
  for (const std::string& text : specs) {
    const auto spec = parse_tier_spec(text);
    if (!spec) return spec.error();
    auto store = pages::open_store(*spec);
    if (!store) return store.error();
    stores.push_back(*std::move(store));
  }
  return stores;
}

}  // namespace

PagedMemory::PagedMemory(std::unique_ptr<State> state) : state_(std::move(state)) {}
PagedMemory::PagedMemory(PagedMemory&&) noexcept = default;
PagedMemory& PagedMemory::operator=(PagedMemory&&) noexcept = default;
PagedMemory::~PagedMemory() = default;

Result<PagedMemory> PagedMemory::create(Bytes size, const PagedMemoryOptions& options) {
  auto stores = open_stores(options.slow);
  if (!stores) return stores.error();
  return create(size, options, *std::move(stores));
}

Result<PagedMemory> PagedMemory::create(Bytes size, const PagedMemoryOptions& options,
                                        std::span<Tier* const> slow) {
  std::vector<std::unique_ptr<pages::Store>> stores;
  for (Tier* tier : slow) stores.push_back(pages::store_on(*tier));
  return create(size, options, std::move(stores));
}

Result<PagedMemory> PagedMemory::create(Bytes size, const PagedMemoryOptions& options,
                                        std::vector<std::unique_ptr<pages::Store>> stores) {
  if (size.count == 0 || stores.empty())
    return Error{ErrorCode::invalid_argument,
                 "paged memory has a size above zero and at least one slower tier"};
  const Bytes whole = round_up(size, kHugePage);
  auto state = std::make_unique<State>();
  state->size = size;
  pages::ServiceOptions service;
  service.fast_bytes = options.fast.count;
  service.most_bytes = whole.count;
  service.policy = options.policy;
  service.overhead = options.overhead;
  service.interval_seconds = std::max(options.interval.count(), 0.01);
  service.workers = std::max(options.workers, 2U);
  auto started = pages::Service::start(std::move(stores), std::move(service));
  if (!started) return started.error();
  state->memory = map_anonymous(whole, "paged memory");
  madvise(state->memory.data(), whole.count, MADV_NOHUGEPAGE);
  const auto start = reinterpret_cast<pages::Address>(state->memory.data());
  if (const int cause = (*started)->manage(start, whole.count))
    return Error{ErrorCode::unsupported,
                 fmt::format("userfaultfd refused memory ({})", std::strerror(cause))};
  state->service = *std::move(started);
  return PagedMemory(std::move(state));
}

std::byte* PagedMemory::data() const noexcept { return state_->memory.data(); }
Bytes PagedMemory::size() const noexcept { return state_->size; }

void PagedMemory::discard(std::size_t offset, Bytes bytes) {
  check(offset + bytes.count <= state_->memory.size(), "what is discarded lies within the memory");
  const Bytes first = round_up(Bytes{offset}, Bytes{kPage});
  const Bytes end = round_down(Bytes{offset} + bytes, Bytes{kPage});
  if (first < end)
    state_->service->discard(reinterpret_cast<pages::Address>(data()) + first.count, (end - first).count);
}

void PagedMemory::will_need(std::size_t offset, Bytes bytes) {
  check(offset + bytes.count <= state_->memory.size(), "what is wanted lies within the memory");
  state_->service->hint(reinterpret_cast<pages::Address>(data()) + offset, bytes.count,
                        pages::Service::Hint::wanted_soon);
}

void PagedMemory::archive(std::size_t offset, Bytes bytes) {
  check(offset + bytes.count <= state_->memory.size(), "what is archived lies within the memory");
  state_->service->hint(reinterpret_cast<pages::Address>(data()) + offset, bytes.count,
                        pages::Service::Hint::not_wanted_soon);
}

PagedMemoryStatistics PagedMemory::statistics() const {
  const pages::ServiceStatistics now = state_->service->statistics();
  const pages::PagerCounts& counts = now.counts;
  const auto pages_of = [](std::uint64_t count) { return Bytes{count * kPage}; };
  PagedMemoryStatistics result;
  result.resident = pages_of(now.resident_pages);
  result.limit = pages_of(now.limit_pages);
  result.stored = Bytes{now.used_slots * pages::kPart};
  result.faults = counts.faults;
  result.zeroed = counts.zero_faults;
  result.opened = counts.write_faults;
  result.fetches = counts.fetch_faults;
  result.rescues = counts.rescues;
  result.read = Bytes{now.read_bytes};
  result.read_ahead = pages_of(counts.read_ahead);
  result.written = Bytes{now.written_bytes};
  result.promoted = pages_of(counts.promoted);
  result.demoted = pages_of(counts.demoted);
  result.samples = now.samples;
  result.intervals = now.intervals;
  result.profiling = std::chrono::nanoseconds(now.sampling_ns);
  result.largest_profiling_share = now.largest_overhead;
  result.left_clean = pages_of(counts.evicted_clean);
  result.left_zero = pages_of(counts.evicted_zero);
  result.waited_for_room = now.room_waits;
  result.waiting = std::chrono::nanoseconds(now.waiting_ns);
  result.longest_wait = std::chrono::nanoseconds(now.longest_ns);
  result.no_room_below = now.cornered;
  return result;
}

double PagedMemory::hotness(std::size_t offset) const {
  return state_->service->hotness(reinterpret_cast<pages::Address>(data()) + offset);
}

std::string PagedMemory::failure() const { return state_->service->loss(); }

std::vector<std::string_view> paged_memory_policies() { return pages::victim_policies(); }

}  // namespace terrace

#include "planners/baselines/prefetch_writer.hpp"

#include <algorithm>

#include "migration/link_use.hpp"

namespace terrace {
namespace {

/// How many fetches are looked at for one that can be started now.
constexpr std::size_t kLookahead = 64;

}  // namespace

PrefetchWriter::PrefetchWriter(const PlanRequest& request, const KernelClock& clock, const StepUses& uses,
                               const Residency& residency, Bytes capacity)
    : request_(request),
      uses_(uses),
      residency_(residency),
      evictions_(residency.evictions),
      capacity_(static_cast<std::int64_t>(capacity.count)),
      after_(evictions_, uses.kernels(), &Eviction::after),
      until_(evictions_, uses.kernels(), &Eviction::until),
      writer_(request, uses, residency, "prefetch"),
      planned_(uses.kernels() + 1),
      tickets_(evictions_.size(), kNever),
      arrival_(evictions_.size()),
      free_at_(2 * request.machine.tiers.size()) {
  begin_.push_back(Seconds{0});
  for (std::uint32_t k = 0; k < uses.kernels(); ++k) begin_.push_back(begin_.back() + clock.fast({k}));
  for (std::uint32_t k = 0; k <= uses.kernels(); ++k) {
    for (const std::uint32_t eviction : until_.at(k)) {
      if (evictions_[eviction].fetches) fetches_.push_back(eviction);
    }
  }
  plan_occupancy();
}

/// With transfers that take no time.
void PrefetchWriter::plan_occupancy() {
  const std::uint32_t end = uses_.kernels();
  std::vector<bool> out(request_.graph.tensors.size());
  for (const Eviction& eviction : evictions_)
    out[eviction.tensor.index] = out[eviction.tensor.index] || eviction.after == kNever;
  for (std::uint32_t i = 0; i < out.size(); ++i) {
    const auto size = static_cast<std::int64_t>(writer_.fast_size({i}).count);
    if (!residency_.pinned[i] && !is_given(request_.graph.tensors[i])) continue;
    used_ += size;
    const std::uint32_t first = uses_.first({i});
    if (!out[i] && first > 0) planned_.add(0, std::min(first, end + 1) - 1, size);
  }
  std::vector<std::uint32_t> left(out.size(), kNever);
  for (std::uint32_t k = 0; k <= end; ++k) {
    for (const std::uint32_t eviction : after_.at(k)) left[evictions_[eviction].tensor.index] = k;
    for (const Use& use : uses_.of(k)) {
      const auto size = static_cast<std::int64_t>(writer_.fast_size(use.tensor).count);
      const bool stays = left[use.tensor.index] != k;
      const bool kept = request_.graph[use.tensor].persistent;
      const std::uint32_t next = use.next != kNever ? use.next : kept ? end + 1 : k + 1;
      planned_.add(k, stays ? next - 1 : k, size);
    }
  }
}

Seconds PrefetchWriter::transfer(TensorId tensor, bool out) {
  const TierId tier = writer_.spilled_to(tensor);
  const Link& link = out ? *request_.machine.link({0}, tier) : *request_.machine.link(tier, {0});
  Seconds& lane = free_at_[2 * tier.index + (out || is_one_lane(link) ? 0 : 1)];
  lane = std::max(lane, now_) + time_beside_kernels(link, writer_.fast_size(tensor));
  return lane;
}

std::uint32_t PrefetchWriter::kernel_at(Seconds time, std::uint32_t from) const {
  const Seconds unhindered = begin_[from] + (time - now_);
  const auto found = std::lower_bound(begin_.begin() + from, begin_.end(), unhindered);
  return static_cast<std::uint32_t>(std::min<std::ptrdiff_t>(found - begin_.begin(), uses_.kernels()));
}

/// `next_kernel`: the one that runs next.
Result<void> PrefetchWriter::leave(std::uint32_t eviction, std::uint32_t next_kernel) {
  const TensorId tensor = evictions_[eviction].tensor;
  const auto size = static_cast<std::int64_t>(writer_.fast_size(tensor).count);
  if (!evictions_[eviction].stores) {
    writer_.drop(tensor);
    used_ -= size;
    return {};
  }
  const auto ticket = writer_.store(tensor);
  if (!ticket) return ticket.error();
  const Seconds end = transfer(tensor, true);
  const std::uint32_t late = kernel_at(end, next_kernel);
  if (late > next_kernel) planned_.add(next_kernel, late - 1, size);
  leaving_.push_back({eviction, *ticket, end, late});
  return {};
}

/// The first of those on their way out is gone before `next_kernel`.
void PrefetchWriter::finish_leaving(std::uint32_t next_kernel) {
  const Leaving gone = leaving_.front();
  leaving_.pop_front();
  now_ = std::max(now_, gone.end);
  writer_.wait(gone.ticket);
  const TensorId tensor = evictions_[gone.eviction].tensor;
  const auto size = static_cast<std::int64_t>(writer_.fast_size(tensor).count);
  writer_.drop(tensor);
  used_ -= size;
  if (gone.late > next_kernel) planned_.add(next_kernel, gone.late - 1, -size);
}

/// A tensor that is needed again while it is still leaving stays, if there is room for it until then. Returns
/// whether it is not leaving any more, one way or the other.
bool PrefetchWriter::keep(std::uint32_t eviction, std::uint32_t kernel) {
  const auto found = std::find_if(leaving_.begin(), leaving_.end(),
                                  [&](const Leaving& leaving) { return leaving.eviction == eviction; });
  if (found == leaving_.end()) return true;
  const auto size = static_cast<std::int64_t>(writer_.fast_size(evictions_[eviction].tensor).count);
  const std::uint32_t from = std::max(kernel, found->late), until = evictions_[eviction].until;
  if (from < until) {
    if (planned_.most(from, until - 1) + size > capacity_) return false;
    planned_.add(from, until - 1, size);
  }
  tickets_[eviction] = found->ticket;
  arrival_[eviction] = found->end;
  leaving_.erase(found);
  return true;
}

void PrefetchWriter::make_room(std::uint32_t kernel) {
  while (!leaving_.empty() && leaving_.front().end <= now_) finish_leaving(kernel);
  for (const std::uint32_t eviction : until_.at(kernel)) {
    if (evictions_[eviction].fetches) keep(eviction, kernel);
  }
  while (used_ + static_cast<std::int64_t>(writer_.missing(kernel).count) > capacity_ && !leaving_.empty()) {
    finish_leaving(kernel);
  }
}

void PrefetchWriter::fetch(std::uint32_t eviction, std::uint32_t kernel) {
  const TensorId tensor = evictions_[eviction].tensor;
  const auto size = static_cast<std::int64_t>(writer_.fast_size(tensor).count);
  tickets_[eviction] = writer_.fetch(tensor);
  arrival_[eviction] = transfer(tensor, false);
  used_ += size;
  if (evictions_[eviction].until > kernel) planned_.add(kernel, evictions_[eviction].until - 1, size);
}

void PrefetchWriter::fetch_ahead(std::uint32_t kernel) {
  const auto missing = static_cast<std::int64_t>(writer_.missing(kernel).count);
  while (next_fetch_ < fetches_.size() && tickets_[fetches_[next_fetch_]] != kNever) ++next_fetch_;
  const std::size_t end = std::min(fetches_.size(), next_fetch_ + kLookahead);
  for (std::size_t i = next_fetch_; i < end; ++i) {
    const std::uint32_t eviction = fetches_[i];
    const bool gone = evictions_[eviction].after == kNever || evictions_[eviction].after < kernel;
    if (tickets_[eviction] != kNever || !gone) continue;
    if (!keep(eviction, kernel)) return;
    if (tickets_[eviction] != kNever) continue;
    const auto size = static_cast<std::int64_t>(writer_.fast_size(evictions_[eviction].tensor).count);
    const std::int64_t before =
        evictions_[eviction].until > 0 ? planned_.most(kernel, evictions_[eviction].until - 1) : 0;
    // The next needed comes first: later ones must not take its room.
    if (before + size > capacity_ || used_ + missing + size > capacity_) return;
    fetch(eviction, kernel);
  }
}

/// What the kernel needs is here from now on.
void PrefetchWriter::arrive(std::uint32_t kernel) {
  for (const std::uint32_t eviction : until_.at(kernel)) {
    if (evictions_[eviction].fetches && tickets_[eviction] == kNever) fetch(eviction, kernel);
  }
  for (const std::uint32_t eviction : until_.at(kernel)) {
    if (!evictions_[eviction].fetches) continue;
    writer_.wait(tickets_[eviction]);
    now_ = std::max(now_, arrival_[eviction]);
  }
}

void PrefetchWriter::compute(std::uint32_t kernel) {
  const Seconds alone = begin_[kernel + 1] - begin_[kernel];
  Seconds lost{0};
  for (std::uint32_t tier = 1; tier < request_.machine.tiers.size(); ++tier) {
    for (const bool out : {true, false}) {
      const Link* link = out ? request_.machine.link({0}, {tier}) : request_.machine.link({tier}, {0});
      if (link == nullptr) continue;
      const Seconds busy = free_at_[2 * tier + (out ? 0 : 1)] - now_;
      lost += link->compute_loss * std::clamp(busy, Seconds{0}, alone);
    }
  }
  now_ += alone + lost;
  used_ += static_cast<std::int64_t>(writer_.missing(kernel).count);
  writer_.run(kernel);
  for (const Use& use : uses_.of(kernel)) {
    if (!writer_.is_fast(use.tensor)) used_ -= static_cast<std::int64_t>(writer_.fast_size(use.tensor).count);
  }
}

Result<Draft> PrefetchWriter::write(PackingEffort effort) {
  if (auto begun = writer_.begin(); !begun) return begun.error();
  for (std::uint32_t eviction = 0; eviction < evictions_.size(); ++eviction) {
    if (evictions_[eviction].after != kNever || !writer_.is_fast(evictions_[eviction].tensor)) continue;
    if (auto left = leave(eviction, 0); !left) return left.error();
  }
  for (std::uint32_t kernel = 0; kernel <= uses_.kernels(); ++kernel) {
    make_room(kernel);
    arrive(kernel);
    fetch_ahead(kernel);
    if (kernel == uses_.kernels()) break;
    compute(kernel);
    for (const std::uint32_t eviction : after_.at(kernel)) {
      if (auto left = leave(eviction, kernel + 1); !left) return left.error();
    }
  }
  while (!leaving_.empty()) finish_leaving(uses_.kernels());
  return writer_.finish(effort);
}

}  // namespace terrace

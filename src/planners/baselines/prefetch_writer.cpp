// SPDX-License-Identifier: Apache-2.0
#include "planners/baselines/prefetch_writer.hpp"

#include <algorithm>

namespace terrace {
namespace {

/// How many of the next fetches are examined in search of one that can start now.
constexpr std::size_t kLookahead = 64;

/// Returns when each kernel would begin if nothing ever waited, and last the step's end.
std::vector<Seconds> begins(const KernelClock& clock, std::uint32_t kernels) {
  std::vector<Seconds> begin{Seconds{0}};
  for (std::uint32_t k = 0; k < kernels; ++k) begin.push_back(begin.back() + clock.fast({k}));
  return begin;
}

}  // namespace

PrefetchWriter::PrefetchWriter(const PlanRequest& request, const KernelClock& clock, const StepUses& uses,
                               const Residency& residency, Bytes capacity)
    : request_(request),
      uses_(uses),
      residency_(residency),
      evictions_(residency.evictions),
      after_(evictions_, uses.kernels(), &Eviction::after),
      until_(evictions_, uses.kernels(), &Eviction::until),
      writer_(request, uses, residency, "prefetch"),
      planned_(uses.kernels() + 1),
      walk_(request.machine, begins(clock, uses.kernels()), capacity),
      tickets_(evictions_.size(), kNever),
      arrival_(evictions_.size()) {
  for (std::uint32_t k = 0; k < uses.kernels(); ++k) alone_.push_back(clock.fast({k}));
  for (std::uint32_t k = 0; k <= uses.kernels(); ++k) {
    for (const std::uint32_t eviction : until_.at(k)) {
      if (evictions_[eviction].fetches) fetches_.push_back(eviction);
    }
  }
  plan_occupancy();
}

/// Counts the bytes in fast memory during each kernel as if transfers took no time.
void PrefetchWriter::plan_occupancy() {
  const std::uint32_t end = uses_.kernels();
  std::vector<bool> out(request_.graph.tensors.size());
  for (const Eviction& eviction : evictions_)
    out[eviction.tensor.index] = out[eviction.tensor.index] || eviction.after == kNever;
  for (std::uint32_t i = 0; i < out.size(); ++i) {
    const std::int64_t size = size_of({i});
    if (!residency_.pinned[i] && !is_given(request_.graph.tensors[i])) continue;
    walk_.used += size;
    const std::uint32_t first = uses_.first({i});
    if (!out[i] && first > 0) planned_.add(0, std::min(first, end + 1) - 1, size);
  }
  std::vector<std::uint32_t> left(out.size(), kNever);
  for (std::uint32_t k = 0; k <= end; ++k) {
    for (const std::uint32_t eviction : after_.at(k)) left[evictions_[eviction].tensor.index] = k;
    for (const Use& use : uses_.of(k)) {
      const std::int64_t size = size_of(use.tensor);
      const bool stays = left[use.tensor.index] != k;
      const bool kept = request_.graph[use.tensor].persistent;
      const std::uint32_t next = use.next != kNever ? use.next : kept ? end + 1 : k + 1;
      planned_.add(k, stays ? next - 1 : k, size);
    }
  }
}

/// Starts an eviction before the kernel `next_kernel` runs.
Result<void> PrefetchWriter::leave(std::uint32_t eviction, std::uint32_t next_kernel) {
  const TensorId tensor = evictions_[eviction].tensor;
  if (!evictions_[eviction].stores) {
    writer_.drop(tensor);
    walk_.used -= size_of(tensor);
    return {};
  }
  const auto ticket = writer_.store(tensor);
  if (!ticket) return ticket.error();
  const TierId to = writer_.spilled_to(tensor);
  migration::Departure departure{eviction, {*ticket}, {}, 0};
  departure.end = walk_.links.start({0}, to, writer_.fast_size(tensor), walk_.now);
  walk_.book(departure, size_of(tensor), next_kernel, planned_);
  walk_.departing.push_back(std::move(departure));
  return {};
}

/// Waits until the oldest eviction under way is complete, before the kernel `next_kernel` runs.
void PrefetchWriter::finish_leaving(std::uint32_t next_kernel) {
  const migration::Departure gone = std::move(walk_.departing.front());
  walk_.departing.pop_front();
  for (const std::uint32_t ticket : gone.tickets) writer_.wait(ticket);
  const TensorId tensor = evictions_[gone.what].tensor;
  writer_.drop(tensor);
  walk_.used -= size_of(tensor);
  walk_.give_up(gone, size_of(tensor), next_kernel, planned_);
}

/// Cancels an eviction whose tensor is needed again while it is still being stored, if there is room for it
/// until that use. Returns whether the eviction is no longer under way, complete or cancelled.
bool PrefetchWriter::keep(std::uint32_t eviction, std::uint32_t kernel) {
  auto& departing = walk_.departing;
  const auto found = std::find_if(departing.begin(), departing.end(),
                                  [&](const auto& departure) { return departure.what == eviction; });
  if (found == departing.end()) return true;
  const std::int64_t size = size_of(evictions_[eviction].tensor);
  if (!walk_.call_back(*found, size, kernel, evictions_[eviction].until, planned_)) return false;
  tickets_[eviction] = found->tickets.front();
  arrival_[eviction] = found->end;
  departing.erase(found);
  return true;
}

void PrefetchWriter::make_room(std::uint32_t kernel) {
  while (!walk_.departing.empty() && walk_.departing.front().end <= walk_.now) finish_leaving(kernel);
  for (const std::uint32_t eviction : until_.at(kernel)) {
    if (evictions_[eviction].fetches) keep(eviction, kernel);
  }
  while (!walk_.has_room(static_cast<std::int64_t>(writer_.missing(kernel).count)) &&
         !walk_.departing.empty()) {
    finish_leaving(kernel);
  }
}

void PrefetchWriter::fetch(std::uint32_t eviction, std::uint32_t kernel) {
  const TensorId tensor = evictions_[eviction].tensor;
  const std::int64_t size = size_of(tensor);
  tickets_[eviction] = writer_.fetch(tensor);
  const TierId from = writer_.spilled_to(tensor);
  arrival_[eviction] = walk_.links.start(from, {0}, writer_.fast_size(tensor), walk_.now);
  walk_.used += size;
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
    const std::int64_t size = size_of(evictions_[eviction].tensor);
    // Fetches start in the order of their uses: a later one must not take the room of an earlier one.
    if (!walk_.can_fetch(size, kernel, evictions_[eviction].until, missing, planned_)) return;
    fetch(eviction, kernel);
  }
}

/// Waits for the fetches of all the kernel's operands.
void PrefetchWriter::arrive(std::uint32_t kernel) {
  for (const std::uint32_t eviction : until_.at(kernel)) {
    if (evictions_[eviction].fetches && tickets_[eviction] == kNever) fetch(eviction, kernel);
  }
  for (const std::uint32_t eviction : until_.at(kernel)) {
    if (!evictions_[eviction].fetches) continue;
    writer_.wait(tickets_[eviction]);
    walk_.now = std::max(walk_.now, arrival_[eviction]);
  }
}

void PrefetchWriter::compute(std::uint32_t kernel) {
  walk_.now = walk_.links.end_of_kernel(alone_[kernel], walk_.now);
  walk_.used += static_cast<std::int64_t>(writer_.missing(kernel).count);
  writer_.run(kernel);
  for (const Use& use : uses_.of(kernel)) {
    if (!writer_.is_fast(use.tensor)) walk_.used -= size_of(use.tensor);
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
  while (!walk_.departing.empty()) finish_leaving(uses_.kernels());
  return writer_.finish(effort);
}

}  // namespace terrace

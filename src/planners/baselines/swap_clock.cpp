// SPDX-License-Identifier: Apache-2.0
#include "planners/baselines/swap_clock.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "migration/busy_links.hpp"
#include "migration/link_use.hpp"

namespace terrace {
namespace {

std::optional<TierId> swap_tier(const Machine& machine) {
  for (std::uint32_t tier = 1; tier < machine.tiers.size(); ++tier) {
    if (machine.is_linked_both_ways({0}, {tier})) return TierId{tier};
  }
  return std::nullopt;
}

/// Returns the indices below `size` in the order of a time.
template <class Time>
std::vector<std::uint32_t> ordered(std::size_t size, Time time) {
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return time(a) < time(b); });
  return order;
}

}  // namespace

bool SwapClock::possible(const PlanRequest& request) { return swap_tier(request.machine).has_value(); }

SwapClock::SwapClock(const PlanRequest& request, const StepUses& uses)
    : machine_(request.machine), slow_(swap_tier(request.machine).value()), kernels_(uses.kernels()) {
  const KernelClock clock(request.graph, request.machine, request.profile);
  begin_.push_back(Seconds{0});
  for (std::uint32_t k = 0; k < kernels_; ++k) begin_.push_back(begin_.back() + clock.fast({k}));
  begin_.push_back(begin_.back());
}

Seconds SwapClock::transfers(const Stretch& stretch, Bytes size) const {
  Seconds time{0};
  if (stretch.needed && stretch.after != kNever)
    time += time_beside_kernels(*machine_.link({0}, slow_), size);
  if (stretch.needed && stretch.until != kernels_)
    time += time_beside_kernels(*machine_.link(slow_, {0}), size);
  return time;
}

Seconds SwapClock::spare(const Stretch& stretch, Bytes size) const {
  return end_of(stretch) - begin_of(stretch) - transfers(stretch, size);
}

bool SwapClock::hide(std::span<Movement> movements, const Graph& graph) const {
  bool hidden = true;
  std::vector<Seconds> out(movements.size());
  migration::BusyLinks outward(machine_);
  for (const std::uint32_t i : ordered(movements.size(), [&](std::uint32_t m) {
         return movements[m].stretch.after + 1;  // the start before all others
       })) {
    Movement& moves = movements[i];
    const Stretch& stretch = moves.stretch;
    moves.leave = moves.gone = stretch.after + 1;
    if (stretch.after == kNever || !stretch.needed) continue;
    out[i] = outward.start({0}, slow_, graph[moves.tensor].bytes, begin_of(stretch));
    const auto found = std::lower_bound(begin_.begin() + moves.leave, begin_.end() - 1, out[i]);
    moves.gone = std::min(stretch.until, static_cast<std::uint32_t>(found - begin_.begin()));
    hidden = hidden && out[i] <= end_of(stretch);
  }
  migration::LatestStarts inward(machine_, begin_.back());
  for (const std::uint32_t i :
       ordered(movements.size(), [&](std::uint32_t m) { return kernels_ - movements[m].stretch.until; })) {
    Movement& moves = movements[i];
    const Stretch& stretch = moves.stretch;
    moves.back = stretch.until;
    if (stretch.until == kernels_ || !stretch.needed) continue;
    const Seconds starts = inward.start(slow_, {0}, graph[moves.tensor].bytes, end_of(stretch));
    const auto after = std::upper_bound(begin_.begin(), begin_.begin() + stretch.until + 1, starts);
    const auto start = static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(after - begin_.begin() - 1, 0));
    moves.back = std::max(moves.gone, std::min(start, stretch.until));
    hidden = hidden && starts >= out[i] && start >= moves.gone;
  }
  return hidden;
}

}  // namespace terrace

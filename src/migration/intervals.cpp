#include "migration/intervals.hpp"

#include <algorithm>

#include "plan/region_size.hpp"

namespace terrace::migration {
namespace {

/// Bytes of short-lived tensors by kernel.
std::vector<Bytes> short_lived_bytes(const StepView& view, const Units& units) {
  std::vector<std::int64_t> change(view.kernels() + 2);
  for (const Unit& unit : units.all) {
    if (!unit.short_lived || unit.touches.empty()) continue;
    const auto size = static_cast<std::int64_t>(unit.size.count);
    change[unit.touches.front().kernel] += size;
    change[unit.touches.back().kernel + 1] -= size;
  }
  std::vector<Bytes> bytes;
  std::int64_t live = 0;
  for (const std::int64_t one : change) bytes.push_back({static_cast<std::uint64_t>(live += one)});
  return bytes;
}

std::vector<std::uint32_t> intervals_of_kernels(const StepView& view, const Cuts& cuts) {
  std::vector<std::uint32_t> intervals;
  std::uint32_t next = 0;
  for (std::uint32_t k = 0; k < view.kernels(); ++k) {
    if (next < cuts.size() && cuts[next] == k) ++next;
    intervals.push_back(next - 1);
  }
  intervals.push_back(next);
  return intervals;
}

}  // namespace

Cuts equal_cuts(const StepView& view, std::uint32_t layers) {
  Cuts cuts;
  for (std::uint32_t layer = 0; layer < view.layers(); layer += layers) {
    cuts.push_back(view.first_kernel[layer]);
  }
  return cuts;
}

Cuts kernel_cuts(const StepView& view) {
  Cuts cuts(view.kernels());
  for (std::uint32_t k = 0; k < view.kernels(); ++k) cuts[k] = k;
  return cuts;
}

Visits make_visits(const StepView& view, const Units& units, const Cuts& cuts) {
  Visits visits;
  visits.interval_of = intervals_of_kernels(view, cuts);
  visits.first.assign(units.all.size(), kNever);
  std::vector<std::uint32_t> latest(units.all.size(), kNever), touched(units.all.size());
  for (std::uint32_t k = 0; k <= view.kernels(); ++k) {
    const std::uint32_t interval = visits.interval_of[k];
    while (visits.begin.size() <= interval) {
      visits.begin.push_back(static_cast<std::uint32_t>(visits.all.size()));
    }
    for (const Use& use : view.uses.of(k)) {
      const std::uint32_t unit = units.of[use.tensor.index], before = latest[unit];
      const bool again = before != kNever && visits.all[before].interval == interval;
      if (again) visits.all[before].writes = visits.all[before].writes || use.writes;
      if (again && visits.all[before].last == k) continue;  // another tensor of the unit
      ++touched[unit];
      if (again) {
        visits.all[before].last = k;
        visits.all[before].touches_end = touched[unit];
        continue;
      }
      latest[unit] = static_cast<std::uint32_t>(visits.all.size());
      (before == kNever ? visits.first[unit] : visits.all[before].next) = latest[unit];
      visits.all.push_back(
          {unit, interval, k, k, touched[unit] - 1, touched[unit], before, kNever, use.writes});
    }
  }
  visits.begin.push_back(static_cast<std::uint32_t>(visits.all.size()));
  return visits;
}

std::vector<Bytes> reserves(const StepView& view, const Units& units, const Cuts& cuts) {
  const std::vector<Bytes> bytes = short_lived_bytes(view, units);
  const std::vector<std::uint32_t> intervals = intervals_of_kernels(view, cuts);
  std::vector<Bytes> most(cuts.size());
  for (std::uint32_t k = 0; k < view.kernels(); ++k) {
    most[intervals[k]] = std::max(most[intervals[k]], bytes[k]);
  }
  return most;
}

Bytes least_fast_memory(const StepView& view, const Units& units) {
  const std::vector<Bytes> bytes = short_lived_bytes(view, units);
  Bytes largest{};
  for (const Unit& unit : units.all) {
    if (unit.short_lived) continue;
    for (const TensorId tensor : unit.tensors) {
      largest = std::max(largest, region_size(view.request.graph[tensor], view.request.machine.tiers[0]));
    }
  }
  return *std::max_element(bytes.begin(), bytes.end()) + largest;
}

}  // namespace terrace::migration

// SPDX-License-Identifier: Apache-2.0
#include "terrace/machine.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/fingerprint.hpp"

namespace terrace {
namespace {

Seconds time_of(const SizedRate& point) { return point.size / point.rate; }

/// Interpolates on the line through two points.
Seconds on_line(const SizedRate& a, const SizedRate& b, Bytes size) {
  const double x = static_cast<double>(size.count), xa = static_cast<double>(a.size.count),
               xb = static_cast<double>(b.size.count);
  return time_of(a) + (time_of(b) - time_of(a)) * ((x - xa) / (xb - xa));
}

/// The first two points show the fixed cost of a transfer, which is never negative.
Seconds below_first(const std::vector<SizedRate>& rates, Bytes size) {
  const Seconds in_proportion = size / rates[0].rate;
  if (rates.size() == 1) return in_proportion;
  return std::clamp(on_line(rates[0], rates[1], size), in_proportion, time_of(rates[0]));
}

}  // namespace

Seconds Link::time(Bytes size) const {
  check(!rates.empty(), "a link has a rate");
  const auto above =
      std::find_if(rates.begin(), rates.end(), [size](const SizedRate& point) { return point.size > size; });
  if (above == rates.begin()) return below_first(rates, size);
  if (above == rates.end()) return size / rates.back().rate;
  return on_line(above[-1], *above, size);
}

double Compute::rate(DataType type) const {
  for (const TypedRate& typed : by_type) {
    if (typed.type == type) return typed.flops_per_second;
  }
  return flops_per_second;
}

bool Machine::reaches(EngineId engine, TierId tier) const {
  if (engine.index == 0) return tiers[tier.index].addressable;
  const auto& reached = further_engines[engine.index - 1].reaches;
  return std::binary_search(reached.begin(), reached.end(), tier);
}

bool Machine::is_reached(TierId tier) const {
  for (std::uint32_t i = 0; i < engine_count(); ++i) {
    if (reaches({i}, tier)) return true;
  }
  return false;
}

const Link* Machine::link(TierId from, TierId to) const {
  const auto found = std::find_if(links.begin(), links.end(), [=](const Link& candidate) {
    return candidate.from == from && candidate.to == to;
  });
  return found == links.end() ? nullptr : &*found;
}

bool Machine::is_linked_both_ways(TierId one, TierId other) const {
  return link(one, other) != nullptr && link(other, one) != nullptr;
}

std::string fingerprint(const Machine& machine) {
  Machine figures = machine;
  figures.name.clear();
  figures.source.clear();
  for (MachineTier& tier : figures.tiers) tier.spec.clear();
  return Fingerprint().add(to_json(figures)).text();
}

}  // namespace terrace

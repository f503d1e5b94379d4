// SPDX-License-Identifier: Apache-2.0
#include "planners/deeptm/heat.hpp"

#include <algorithm>
#include <limits>

namespace terrace::deeptm {
namespace {

using migration::StepView;
using migration::Unit;
using migration::Units;
using migration::Visit;
using migration::Visits;

constexpr double kStep = 0.02, kMostHot = 1.1, kLeastHot = 0.9, kTight = 2.5;
/// How often the weights of one kernel are changed at most, and how far they go: a weight that went to zero
/// or beyond all others would take the kernels after it ever longer to bring back.
constexpr int kMostSteps = 200;
constexpr double kLeastWeight = 0.02, kMostWeight = 50;

std::int64_t hot_bytes(const std::vector<Properties>& living, const Weights& weights, Hotter hotter) {
  std::int64_t bytes = 0;
  for (const Properties& one : living) bytes += heat(one, weights, hotter) >= 0 ? one.bytes : 0;
  return bytes;
}

constexpr double Properties::*kProperties[] = {&Properties::recency, &Properties::frequency,
                                               &Properties::size, &Properties::lifetime};

HeatScale scale_of(const std::vector<Properties>& living) {
  HeatScale scale;
  for (double Properties::*property : kProperties) {
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (const Properties& one : living) {
      least = std::min(least, one.*property);
      most = std::max(most, one.*property);
    }
    scale.least.*property = least;
    scale.most.*property = most;
  }
  return scale;
}

void apply(const HeatScale& scale, Properties& one) {
  for (double Properties::*property : kProperties) {
    const double least = scale.least.*property, most = scale.most.*property;
    one.*property = most > least ? (one.*property - least) / (most - least) : 0;
  }
}

/// What one property alone makes of a tensor: the greater, the hotter.
double value_of(const Properties& one, const HeatRules& rules) {
  switch (rules.property) {
    case Property::size:
      return -one.size;
    case Property::lifetime:
      return rules.hotter == Hotter::long_lived ? one.lifetime : -one.lifetime;
    case Property::recency:
      return -one.recency;
    default:
      return one.frequency;
  }
}

/// The properties of a unit with `passed` of its uses over, not scaled yet.
Properties properties_of(const StepView& view, const Unit& unit, std::size_t passed, std::uint32_t kernel) {
  const bool again = passed == unit.touches.size();  // in the next step
  const std::uint32_t next =
      again ? view.kernels() + unit.touches.front().kernel : unit.touches[passed].kernel;
  const std::uint32_t lifetime =
      unit.persistent ? view.kernels() : unit.touches.back().kernel - unit.touches.front().kernel;
  const std::size_t uses = unit.touches.size() - (unit.persistent ? 0 : passed);
  return {static_cast<double>(next) - kernel, static_cast<double>(uses), static_cast<double>(unit.size.count),
          static_cast<double>(lifetime), static_cast<std::int64_t>(unit.size.count)};
}

/// One property alone has no weights to adjust: the best tensors are hot until fast memory is full.
std::vector<double> ranked(const std::vector<Properties>& living, std::int64_t capacity, HeatRules rules) {
  const auto value = [&](const Properties& one) { return value_of(one, rules); };
  std::vector<std::uint32_t> order(living.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return value(living[a]) > value(living[b]); });
  std::vector<double> heats(living.size());
  std::int64_t bytes = 0;
  for (const std::uint32_t i : order) {
    bytes += living[i].bytes;
    const double rank = static_cast<double>(bytes) / static_cast<double>(std::max<std::int64_t>(capacity, 1));
    heats[i] = 1 - rank;
  }
  return heats;
}

class Heating {
 public:
  Heating(const StepView& view, const Units& units, const Visits& visits, Bytes capacity, HeatRules rules)
      : view_(view),
        units_(units),
        visits_(visits),
        capacity_(static_cast<std::int64_t>(capacity.count)),
        rules_(rules),
        table_{std::vector<double>(units.all.size()), std::vector<double>(visits.all.size()),
               std::vector<double>(visits.all.size()), std::vector<HeatScale>(view.kernels() + 2)},
        now_(units.all.size()),
        passed_(units.all.size()),
        begins_(view.kernels() + 2) {
    for (std::uint32_t u = 0; u < units.all.size(); ++u) {
      const Unit& unit = units.all[u];
      if (unit.touches.empty()) continue;
      begins_[unit.persistent || unit.given ? 0 : unit.touches.front().kernel].push_back(u);
    }
  }

  HeatTable run() {
    for (std::uint32_t k = 0; k <= view_.kernels() + 1; ++k) {
      pass(k);
      heat_up(k);
      if (k == 0) table_.start = now_;
      if (k <= view_.kernels()) record(k, table_.before);
      if (k > 0) record(k - 1, table_.after);
    }
    return std::move(table_);
  }

 private:
  /// Kernel k is next: what began lives, and what was used last before it is over.
  void pass(std::uint32_t k) {
    living_.insert(living_.end(), begins_[k].begin(), begins_[k].end());
    std::erase_if(living_, [&](std::uint32_t u) {
      const Unit& unit = units_.all[u];
      while (passed_[u] < unit.touches.size() && unit.touches[passed_[u]].kernel < k) ++passed_[u];
      return passed_[u] == unit.touches.size() && !unit.persistent;
    });
  }

  void heat_up(std::uint32_t k) {
    std::vector<Properties> living;
    for (const std::uint32_t u : living_)
      living.push_back(properties_of(view_, units_.all[u], passed_[u], k));
    table_.scale[k] = scale_of(living);
    for (Properties& one : living) apply(table_.scale[k], one);
    if (rules_.property != Property::all) {
      const std::vector<double> heats = ranked(living, capacity_, rules_);
      for (std::size_t i = 0; i < living_.size(); ++i) now_[living_[i]] = heats[i];
      return;
    }
    if (rules_.weighting == Weighting::dynamic) adjust(weights_, living, capacity_, rules_.hotter);
    table_.scale[k].weights = weights_;
    // Where all that lives fits, nothing is too cold.
    std::int64_t all = 0;
    for (const Properties& one : living) all += one.bytes;
    const double least = all <= capacity_ ? 0 : -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < living_.size(); ++i)
      now_[living_[i]] = std::max(heat(living[i], weights_, rules_.hotter), least);
  }

  void record(std::uint32_t kernel, std::vector<double>& heats) const {
    const std::uint32_t interval = visits_.interval_of[kernel];
    for (std::uint32_t v = visits_.begin[interval]; v < visits_.begin[interval + 1]; ++v)
      heats[v] = now_[visits_.all[v].unit];
  }

  const StepView& view_;
  const Units& units_;
  const Visits& visits_;
  std::int64_t capacity_;
  HeatRules rules_;
  HeatTable table_;
  Weights weights_;
  std::vector<double> now_;                         ///< by unit: its heat when it last lived
  std::vector<std::uint32_t> passed_;               ///< by unit: touches that are over
  std::vector<std::vector<std::uint32_t>> begins_;  ///< by kernel: units that live from there on
  std::vector<std::uint32_t> living_;
};

}  // namespace

std::int64_t adjust(Weights& weights, const std::vector<Properties>& living, std::int64_t capacity,
                    Hotter hotter) {
  std::int64_t all = 0;
  for (const Properties& one : living) all += one.bytes;
  const auto limit = static_cast<double>(capacity);
  std::int64_t hot = hot_bytes(living, weights, hotter);
  // What fits as a whole needs no choice, and Algorithm 1 would never end.
  if (static_cast<double>(all) <= kMostHot * limit) return hot;
  const auto off_by = [&](std::int64_t bytes) { return std::abs(static_cast<double>(bytes) - limit); };
  double Weights::*adjusted = static_cast<double>(all) >= kTight * limit ? &Weights::size : &Weights::recency;
  int direction = 0;
  for (int step = 0; step < kMostSteps; ++step) {
    const auto bytes = static_cast<double>(hot);
    if (bytes < kMostHot * limit && bytes > kLeastHot * limit) break;
    const int wanted = bytes >= kMostHot * limit ? 1 : -1;
    Weights next = weights;
    next.*adjusted *= 1 + wanted * kStep;
    if (next.*adjusted < kLeastWeight || next.*adjusted > kMostWeight) break;
    const std::int64_t then = hot_bytes(living, next, hotter);
    if (direction == -wanted && off_by(then) >= off_by(hot)) break;
    direction = wanted;
    weights = next;
    hot = then;
  }
  return hot;
}

HeatTable make_heat(const StepView& view, const Units& units, const Visits& visits, Bytes capacity,
                    const HeatRules& rules) {
  return Heating(view, units, visits, capacity, rules).run();
}

double idle_heat(const HeatTable& table, const StepView& view, const Unit& unit, const Visit& next,
                 std::uint32_t kernel, const HeatRules& rules) {
  const HeatScale& scale = table.scale[kernel];
  Properties of = properties_of(view, unit, next.touches, kernel);
  apply(scale, of);
  return rules.property == Property::all ? heat(of, scale.weights, rules.hotter) : value_of(of, rules);
}

}  // namespace terrace::deeptm

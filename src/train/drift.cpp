// SPDX-License-Identifier: Apache-2.0
#include "train/drift.hpp"

#include <algorithm>
#include <cmath>

#include "base/median.hpp"

namespace terrace {
namespace {

/// Returns how long all kernels of a step took together.
Seconds computing(const Plan& plan, const Timeline& timeline) {
  Seconds sum{0};
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    if (std::holds_alternative<Run>(plan.instructions[i])) sum += timeline.instructions[i].length();
  }
  return sum;
}

/// For how long at least one copy over the link was on its way.
Seconds busy(const Plan& plan, const Timeline& timeline, const Link& link) {
  std::vector<Interval> copies;
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    const auto* copy = std::get_if<Copy>(&plan.instructions[i]);
    if (copy != nullptr && copy->from == link.from && copy->to == link.to)
      copies.push_back(timeline.instructions[i]);
  }
  std::sort(copies.begin(), copies.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  Seconds sum{0}, end{0};
  for (const Interval& copy : copies) {
    sum += std::max(Seconds{0}, copy.end - std::max(copy.begin, end));
    end = std::max(end, copy.end);
  }
  return sum;
}

double ratio(Seconds measured, Seconds predicted) {
  return measured > Seconds{0} && predicted > Seconds{0} ? measured / predicted : 1;
}

}  // namespace

double Drift::largest() const {
  double most = std::max(kernels, 1 / kernels);
  for (const double link : links) most = std::max({most, link, 1 / link});
  return most;
}

Drift drift_of(const Machine& machine, const Plan& plan, const Timeline& measured,
               const Timeline& predicted) {
  Drift drift{ratio(computing(plan, measured), computing(plan, predicted)), {}};
  for (const Link& link : machine.links)
    drift.links.push_back(ratio(busy(plan, measured, link), busy(plan, predicted, link)));
  return drift;
}

double unevenness(const Plan& plan, const Timeline& measured, const Timeline& predicted) {
  Seconds off{0};
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    if (std::holds_alternative<Run>(plan.instructions[i]))
      off +=
          Seconds{std::abs((measured.instructions[i].length() - predicted.instructions[i].length()).count())};
  }
  const Seconds all = computing(plan, predicted);
  return all > Seconds{0} ? off / all : 0;
}

Timeline median_of(const std::vector<Timeline>& steps) {
  Timeline middle = steps.front();
  for (std::size_t i = 0; i < middle.instructions.size(); ++i) {
    std::vector<double> lengths;
    for (const Timeline& step : steps) lengths.push_back(step.instructions[i].length().count());
    middle.instructions[i].end = middle.instructions[i].begin + Seconds{median(std::move(lengths))};
  }
  return middle;
}

Drift median_of(const std::vector<Drift>& drifts) {
  const auto of = [&](auto factor) {
    std::vector<double> values;
    for (const Drift& drift : drifts) values.push_back(factor(drift));
    return median(std::move(values));
  };
  Drift middle{of([](const Drift& drift) { return drift.kernels; }), {}};
  for (std::size_t i = 0; i < drifts.front().links.size(); ++i)
    middle.links.push_back(of([i](const Drift& drift) { return drift.links[i]; }));
  return middle;
}

Machine corrected(Machine machine, const Drift& drift) {
  for (std::size_t i = 0; i < machine.links.size(); ++i) {
    for (SizedRate& sized : machine.links[i].rates) sized.rate.value /= drift.links[i];
  }
  return machine;
}

Profile corrected(Profile profile, const Drift& drift, const Machine& machine) {
  for (KernelProfile& kernel : profile.kernels) {
    for (auto& variant : kernel.variants) {
      for (PlacedTime& placed : variant) {
        for (Seconds* time : {&placed.cold, &placed.warm, &placed.spread}) *time *= drift.kernels;
      }
    }
  }
  profile.machine = fingerprint(machine);
  return profile;
}

}  // namespace terrace

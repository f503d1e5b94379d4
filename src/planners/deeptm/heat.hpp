// SPDX-License-Identifier: Apache-2.0
// The heat of tensors (004 section IV-A): how much each deserves fast memory at each kernel.
//
//   recency     kernels until the next use (r)      frequency   uses from here on (f)
//   size        bytes (s)                           lifetime    kernels from the first use to the last (l)
//   heat        f w_f - r w_r - s w_s -+ l w_l, with each property scaled to 0..1 over the tensors that live
//   hot         of heat zero or more
//
// Algorithm 1 of 004 changes the weight of size or recency by two percent at a time until the hot tensors
// fill between 0.9 and 1.1 of fast memory, and hands the weights on to the next kernel.
#pragma once

#include <vector>

#include "migration/intervals.hpp"

namespace terrace::deeptm {

/// What heat is made of: all properties, or one alone as in 004 Fig. 4.
enum class Property { all, size, lifetime, recency, frequency };
/// Algorithm 1 adjusts weights; fixed ones stay at 1.
enum class Weighting { dynamic, fixed };

/// 004 contradicts itself about lifetime: Algorithm 1 adds it, while the text above it sends tensors that
/// live long to slow memory. Short as the text has it, long as the algorithm.
enum class Hotter { short_lived, long_lived };

struct HeatRules {
  Property property = Property::all;
  Weighting weighting = Weighting::dynamic;
  Hotter hotter = Hotter::short_lived;
};

struct Weights {
  double recency = 1, frequency = 1, size = 1, lifetime = 1;
};

/// The properties of one living tensor, each scaled to 0..1.
struct Properties {
  double recency = 0, frequency = 0, size = 0, lifetime = 0;
  std::int64_t bytes = 0;
};

/// What heat is made of when a kernel begins: the weights, and what scales each property.
struct HeatScale {
  Weights weights;
  Properties least, most;
};

/// The heat of units at the moments when something is decided about them.
struct HeatTable {
  std::vector<double> start;     ///< by unit: when the step starts
  std::vector<double> before;    ///< by visit: when its kernel begins
  std::vector<double> after;     ///< by visit: when its kernel is over
  std::vector<HeatScale> scale;  ///< by kernel, for units between two visits
};

inline double heat(const Properties& of, const Weights& by, Hotter hotter) {
  const double lifetime = of.lifetime * by.lifetime;
  return of.frequency * by.frequency - of.recency * by.recency - of.size * by.size +
         (hotter == Hotter::long_lived ? lifetime : -lifetime);
}

/// Algorithm 1 for one kernel. Where the bytes that are hot jump over the window, or all tensors fit, the
/// weights that come nearest are kept. Returns the bytes that are hot.
std::int64_t adjust(Weights& weights, const std::vector<Properties>& living, std::int64_t capacity,
                    Hotter hotter);

/// pre: every visit has one kernel
HeatTable make_heat(const migration::StepView& view, const migration::Units& units,
                    const migration::Visits& visits, Bytes capacity, const HeatRules& rules);

/// The heat of a unit that is not in use when a kernel begins; of one property alone, how much of it there
/// is. pre: kernel <= the first of `next`, which is a visit of the unit
double idle_heat(const HeatTable& table, const migration::StepView& view, const migration::Unit& unit,
                 const migration::Visit& next, std::uint32_t kernel, const HeatRules& rules);

}  // namespace terrace::deeptm

// SPDX-License-Identifier: Apache-2.0
// When two tensors agree: no element differs by more than a share of the largest magnitude in the tensor.
//
// Elements are sums whose terms cancel, so their own size says nothing of the rounding in them: that of the
// whole tensor does.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace terrace::agreement {

constexpr double kTolerance = 1e-4;
/// What is zero but for rounding, such as the slope of a function that is constant, agrees below this.
constexpr double kNothing = 1e-6;

inline double largest(const std::vector<float>& values) {
  double most = 0;
  for (const float value : values) most = std::max(most, std::abs(double{value}));
  return most;
}

inline testing::AssertionResult agree(const std::vector<float>& ours, const std::vector<float>& torch,
                                      double tolerance = kTolerance) {
  if (ours.size() != torch.size()) {
    return testing::AssertionFailure() << ours.size() << " elements, and " << torch.size() << " in PyTorch";
  }
  const double allowed = std::max(tolerance * largest(torch), kNothing);
  std::size_t worst = 0, wrong = 0;
  const auto distance = [&](std::size_t i) {
    const double d = std::abs(double{ours[i]} - double{torch[i]});
    return std::isnan(d) ? HUGE_VAL : d;
  };
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (distance(i) > distance(worst)) worst = i;
    if (distance(i) > allowed) ++wrong;
  }
  if (wrong == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << wrong << " of " << ours.size() << " elements differ by more than "
                                     << allowed << ": element " << worst << " is " << ours[worst]
                                     << ", in PyTorch " << torch[worst];
}

}  // namespace terrace::agreement

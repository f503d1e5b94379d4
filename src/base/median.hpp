// The median of a set of values.
#pragma once

#include <algorithm>
#include <vector>

#include "base/check.hpp"

namespace terrace {

/// Returns the middle value, or the mean of the middle two of an even number. pre: `values` is not empty
template <class Value>
Value median(std::vector<Value> values) {
  check(!values.empty(), "a median is of something");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

}  // namespace terrace

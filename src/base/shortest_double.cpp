#include "base/shortest_double.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <limits>

namespace terrace {

double shortest_double(float value) {
  const double shortest = std::strtod(fmt::format("{}", value).c_str(), nullptr);
  const bool fits = std::abs(shortest) <= static_cast<double>(std::numeric_limits<float>::max());
  return fits && static_cast<float>(shortest) == value ? shortest : static_cast<double>(value);
}

}  // namespace terrace

// The factor by which random tests run longer than usual: the environment variable TERRACE_STRESS, or 1
// without it.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace terrace {

inline int stress_factor() {
  const char* factor = std::getenv("TERRACE_STRESS");
  return factor != nullptr ? std::max(1, std::atoi(factor)) : 1;
}

}  // namespace terrace

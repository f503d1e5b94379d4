// SPDX-License-Identifier: Apache-2.0
#include "base/last_cache.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace terrace {

using namespace literals;

Bytes largest_listed_cache(const std::filesystem::path& folder) {
  Bytes largest;
  for (int i = 0; i < 10; ++i) {
    std::ifstream file(folder / ("index" + std::to_string(i)) / "size");
    std::uint64_t count = 0;
    char unit = ' ';
    if (!(file >> count)) continue;
    file >> unit;
    largest = std::max(largest, count * (unit == 'K' ? 1_KiB : unit == 'M' ? 1_MiB : 1_B));
  }
  return largest;
}

/// `sysconf` may count all last caches of a processor, ten times what one core can fill: emptying so much
/// between two measurements takes longer than what is measured.
Bytes last_cache() {
  if (const Bytes listed = largest_listed_cache("/sys/devices/system/cpu/cpu0/cache"); listed > Bytes{})
    return listed;
  for (const int level : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
    if (const long size = sysconf(level); size > 0) return {static_cast<std::uint64_t>(size)};
  }
  return 32_MiB;
}

}  // namespace terrace

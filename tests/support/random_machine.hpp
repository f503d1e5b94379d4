// SPDX-License-Identifier: Apache-2.0
// Random machines, for property tests of everything that takes one: two to four tiers, each slower than the
// one before, some of which kernels cannot use in place, with granularities of memory and of disks, and links
// between all. The same seed gives the same machine.
#pragma once

#include <string>

#include "base/random.hpp"
#include "terrace/machine.hpp"

namespace terrace {

inline Machine random_machine(std::uint64_t seed) {
  SplitMix random(seed);
  Machine machine;
  machine.name = "random" + std::to_string(seed);
  machine.source = "tests";
  machine.compute = {"any", 1, 1e11};
  const std::uint32_t tiers = 2 + static_cast<std::uint32_t>(random.below(3));
  for (std::uint32_t i = 0; i < tiers; ++i) {
    MachineTier tier;
    tier.name = "tier" + std::to_string(i);
    tier.capacity = Bytes{1ULL << (30 + i)};
    tier.addressable = i == 0 || random.below(2) == 0;
    tier.read = tier.write = {1e11 / (1 << (2 * i))};
    tier.latency = Seconds{1e-7 * (i + 1)};
    tier.granularity = Bytes{random.below(3) == 0 ? 4096U : 64U};
    machine.tiers.push_back(tier);
  }
  for (std::uint32_t from = 0; from < tiers; ++from) {
    for (std::uint32_t to = 0; to < tiers; ++to) {
      if (from == to) continue;
      const double rate =
          1e10 / static_cast<double>(1 + from + to) / static_cast<double>(1 + random.below(4));
      machine.links.push_back(
          {{from}, {to}, {{Bytes{4096}, {rate / 2}}, {Bytes{1 << 20}, {rate}}}, 0.8, 0.1, 1, 0.9});
    }
  }
  return machine;
}

}  // namespace terrace

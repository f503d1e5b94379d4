// SPDX-License-Identifier: Apache-2.0
// A server of two sockets, on which the remote socket's memory is the slow tier (000).
#include <tuple>

#include "machine/presets.hpp"

namespace terrace::presets {
namespace {

using namespace literals;

Machine sentinel() {
  Machine machine;
  machine.source =
      "Rates, latencies and the link: 000 Table 2. Both directions at once pass the 34 GB/s of the fast "
      "tier. "
      "Assumed, for 000 gives none: 64 GB for each socket, and 4 of 24 threads copy, whose time kernels "
      "lose. "
      "Compute: Xeon E5-2670 v3, 12 cores of a socket, 32 single-precision operations a cycle (AVX2) at 2.3 "
      "GHz; 24 threads as in 000.";
  machine.compute = {"Xeon E5-2670 v3, 12 cores", 24, 12 * 32 * 2.3e9};
  for (const auto& [name, rate, latency] : {std::tuple{"local", 34.0, 87e-9}, {"remote", 19.0, 182.7e-9}}) {
    MachineTier tier;
    tier.name = name;
    tier.capacity = 64_GB;
    tier.read = tier.write = gb_per_second(rate);
    tier.latency = Seconds{latency};
    machine.tiers.push_back(std::move(tier));
  }
  const Sharing sharing{34.0 / (2 * 19.0), 4.0 / 24.0, 4};
  machine.links = {copy_link(machine, TierId{0}, TierId{1}, sharing),
                   copy_link(machine, TierId{1}, TierId{0}, sharing)};
  return machine;
}

}  // namespace

std::vector<Preset> numa() {
  return {{"numa-sentinel", "the memories of two sockets, 34 and 19 GB/s (Sentinel)", sentinel}};
}

}  // namespace terrace::presets

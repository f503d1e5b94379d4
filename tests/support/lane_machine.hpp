// SPDX-License-Identifier: Apache-2.0
// The machine that tests of lanes have in common: memories `fast` and `slow`, and one engine that reaches
// both. Links and further engines are each test's own.
#pragma once

#include "terrace/machine.hpp"

namespace terrace::testing {

inline Machine lane_machine(Bytes capacity, const char* engine) {
  Machine machine;
  machine.name = "lanes";
  machine.compute = {engine, 1, 1e9};
  for (const char* name : {"fast", "slow"}) {
    MachineTier tier;
    tier.name = name;
    tier.capacity = capacity;
    tier.read = tier.write = {1e9};
    machine.tiers.push_back(tier);
  }
  return machine;
}

/// An engine beside those that the machine has, and the tiers it can use in place.
inline void add_engine(Machine& machine, double flops_per_second, std::vector<TierId> reaches) {
  const std::size_t number = machine.further_engines.size() + 1;
  machine.further_engines.push_back(
      {{"engine" + std::to_string(number), 1, flops_per_second, {}}, std::move(reaches)});
}

}  // namespace terrace::testing

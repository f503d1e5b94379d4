// SPDX-License-Identifier: Apache-2.0
// A fake device checks the order of operations by the ranges of bytes that each reads and writes: those of a
// kernel are the bytes of its operands.
#pragma once

#include <span>

#include "terrace/foreign.hpp"
#include "tiers/fake_order.hpp"

namespace terrace {

inline FakeRanges fake_ranges(std::span<const DeviceBytes> operands) {
  FakeRanges ranges;
  for (const DeviceBytes& one : operands)
    ranges.push_back({one.address.value, one.address.value + one.size.count});
  return ranges;
}

}  // namespace terrace

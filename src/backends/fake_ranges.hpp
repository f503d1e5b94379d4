// SPDX-License-Identifier: Apache-2.0
// What a kernel reads or writes, as a fake device wants to be told.
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

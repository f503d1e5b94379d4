// SPDX-License-Identifier: Apache-2.0
// A naive plan that spills: before a kernel everything it does not use leaves fast memory, and its operands
// come in; neighbours travel together. Slow regions have offsets of their own, fast ones the first hole that
// is large enough.
#pragma once

#include "terrace/trainer.hpp"

namespace terrace {

/// Two tiers; specs as `open_tier` reads them, their sizes do not matter.
Machine two_tiers(const std::string& slow_spec, Bytes fast_granularity = Bytes{64},
                  Bytes slow_granularity = Bytes{64}, bool slow_addressable = true);

struct SpillOptions {
  /// Every operand with an index divisible by it is used in the slow tier where it lies; 0: none.
  unsigned in_place = 0;
};

/// With the least fast memory such a plan can do with. pre: every tensor has bytes
Plan spill_plan(const Graph& graph, const Machine& machine, const SpillOptions& options = {});

}  // namespace terrace

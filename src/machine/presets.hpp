// The machines of the papers, one function each. Figures from a paper are cited with their place in it; the
// machine's `source` says what is derived or assumed.
#pragma once

#include <string>
#include <vector>

#include "terrace/machine.hpp"

namespace terrace::presets {

struct Preset {
  std::string_view name, summary;
  Machine (*make)();
};

std::vector<Preset> optane();
std::vector<Preset> numa();
std::vector<Preset> gpu();

constexpr BytesPerSecond gb_per_second(double gigabytes) { return {gigabytes * 1e9}; }

/// How much a busy link slows kernels and the opposite link.
struct Sharing {
  double both_ways = 1;
  double compute_loss = 0;
  unsigned threads = 1;
};

/// A copy reads its source and writes its destination at once, so its rate is the slower of the two.
Link copy_link(const Machine& machine, TierId from, TierId to, Sharing sharing);
/// Returns the effective rates at sizes from 64 KiB to 16 MiB when every transfer has a fixed overhead.
std::vector<SizedRate> rates_with_overhead(BytesPerSecond rate, Seconds overhead);

}  // namespace terrace::presets

// The machines of the papers, one function each. Figures that a paper gives are named with their place in it;
// what is derived or assumed is said so in the machine's source.
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

/// How a link shares the machine with others.
struct Sharing {
  double both_ways = 1;
  double compute_loss = 0;
  unsigned threads = 1;
};

/// A copy reads its source and writes its destination at once: the slower of the two is its rate.
Link copy_link(const Machine& machine, TierId from, TierId to, Sharing sharing);
/// The same rate less what every transfer costs on top, at sizes from 64 KiB to 16 MiB.
std::vector<SizedRate> rates_with_overhead(BytesPerSecond rate, Seconds overhead);

}  // namespace terrace::presets

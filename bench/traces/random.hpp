// Random traces: blocks of random sizes are freed in random order, about `live` of them at a time.
#pragma once

#include <cmath>
#include <random>
#include <utility>

#include "traces/trace.hpp"

namespace terrace::bench {

/// `size` draws a size. The number of live blocks fluctuates around `live`: the probability of an allocation
/// falls as it rises.
template <class Size>
Trace random_trace(std::string name, std::uint64_t seed, std::size_t live, std::size_t events, Size size) {
  Trace trace{std::move(name), {}, 0};
  std::mt19937_64 random(seed);
  std::vector<std::uint32_t> blocks;
  while (trace.events.size() < events) {
    if (random() % (2 * live) >= blocks.size()) {
      blocks.push_back(trace.allocate(size(random)));
    } else {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      trace.free(blocks.back());
      blocks.pop_back();
    }
  }
  for (const std::uint32_t id : blocks) trace.free(id);
  return trace;
}

inline Trace random_large(std::uint64_t seed) {
  return random_trace("random: 4 KiB to 64 MiB log-uniform, 400 live", seed, 400, 20'000, [](auto& random) {
    std::uniform_real_distribution<double> exponent(12, 26);
    return static_cast<std::uint64_t>(std::exp2(exponent(random)));
  });
}

inline Trace random_small(std::uint64_t seed) {
  return random_trace("random: 64 B to 4 KiB uniform, 10000 live", seed, 10'000, 200'000, [](auto& random) {
    return std::uniform_int_distribution<std::uint64_t>(64, 4096)(random);
  });
}

}  // namespace terrace::bench

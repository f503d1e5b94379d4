// SplitMix64 (Steele, Lea, Flood 2014) passes a counter through a mixing function. A seed gives the same
// numbers on every platform, which the standard's distributions do not promise. It is a plain value and not
// meant for cryptography.
#pragma once

#include <bit>
#include <cstdint>

#include "base/check.hpp"

namespace terrace {

class SplitMix {
 public:
  explicit constexpr SplitMix(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

  /// Draws one of 0 to bound - 1 with equal probability. pre: bound > 0
  std::uint64_t below(std::uint64_t bound) {
    check(bound > 0, "there is no number below zero");
    // Rejecting values out of range keeps the rest equally likely, which a remainder would not.
    const std::uint64_t mask = ~std::uint64_t{0} >> std::countl_zero((bound - 1) | 1);
    std::uint64_t drawn = next() & mask;
    while (drawn >= bound) drawn = next() & mask;
    return drawn;
  }

 private:
  std::uint64_t state_;
};

}  // namespace terrace

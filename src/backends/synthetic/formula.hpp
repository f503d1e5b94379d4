// SPDX-License-Identifier: Apache-2.0
// What the synthetic kernels compute, in integers, so that a processor and a GPU give the same bits.
//
// A kernel first sums up a digest of all bytes it reads, in any order, and then writes bytes that follow from
// the digest alone: inputs and outputs may be the same memory.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define TERRACE_EVERYWHERE __host__ __device__
#else
#define TERRACE_EVERYWHERE
#endif

namespace terrace::synthetic {

/// A bijection that leaves no bit where it was (the finisher of SplitMix64).
TERRACE_EVERYWHERE constexpr std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}

/// Returns what one byte adds to the digest.
TERRACE_EVERYWHERE constexpr std::uint64_t share_of(std::uint64_t operand, std::uint64_t index,
                                                    std::uint8_t byte) {
  return scramble((operand << 56U) + (index << 8U) + byte + 1);
}

TERRACE_EVERYWHERE constexpr std::uint8_t byte_at(std::uint64_t digest, std::uint64_t operand,
                                                  std::uint64_t index) {
  return static_cast<std::uint8_t>(scramble(digest + (operand << 56U) + index));
}

}  // namespace terrace::synthetic

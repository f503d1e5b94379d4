// SPDX-License-Identifier: Apache-2.0
// Measures how fast memcpy, stream_copy and a mover copy memory with the same threads, in turns.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "mover/stream_copy.hpp"
#include "report.hpp"
#include "terrace/mover.hpp"

namespace terrace::bench {

/// The sorted ratios of one contender to the other, one for each round.
struct Ratios {
  std::vector<double> rounds;
  double ours = 0, theirs = 0;  ///< median GB/s

  double median() const { return rounds[rounds.size() / 2]; }
};

/// Runs both in turns, alternating which is first; a contender returns its GB/s.
inline Ratios compare(int rounds, const std::function<double()>& ours,
                      const std::function<double()>& theirs) {
  ours();
  theirs();
  std::vector<double> our_rates, their_rates;
  Ratios result;
  for (int i = 0; i < rounds; ++i) {
    if (i % 2 == 0) our_rates.push_back(ours());
    their_rates.push_back(theirs());
    if (i % 2 == 1) our_rates.push_back(ours());
    result.rounds.push_back(our_rates.back() / their_rates.back());
  }
  std::sort(result.rounds.begin(), result.rounds.end());
  result.ours = median(our_rates);
  result.theirs = median(their_rates);
  return result;
}

/// A `hot` case copies the same bytes again and again; otherwise it walks through all memory, as a mover's
/// copies do.
struct MemoryCase {
  std::size_t bytes = 0;  ///< size of each thread's copy
  unsigned threads = 1;
  bool hot = false;
};

inline constexpr std::size_t kMemory = std::size_t{1} << 30;
inline constexpr std::size_t kEachRound = std::size_t{64} << 20;

inline double rate(std::size_t bytes, const std::function<void()>& work) {
  const auto start = steady_clock().now();
  work();
  return (Bytes{bytes} / Seconds(steady_clock().now() - start)).value / 1e9;
}

inline std::size_t all_bytes(const MemoryCase& at) { return at.bytes * at.threads; }
inline std::size_t repeats(const MemoryCase& at) {
  return std::max<std::size_t>(1, kEachRound / all_bytes(at));
}

/// Returns the offset of copy number `i`.
inline std::size_t place(const MemoryCase& at, std::size_t i) { return at.hot ? 0 : i * all_bytes(at); }

/// Copies with plain threads.
template <class Copy>
double copy_rate(const MemoryCase& at, std::byte* to, const std::byte* from, Copy copy) {
  const auto work = [&](unsigned thread) {
    for (std::size_t i = 0; i < repeats(at); ++i) {
      const std::size_t offset = place(at, i) + thread * at.bytes;
      copy(to + offset, from + offset, at.bytes);
    }
  };
  return rate(repeats(at) * all_bytes(at), [&] {
    std::vector<std::thread> others;
    for (unsigned i = 1; i < at.threads; ++i) others.emplace_back(work, i);
    work(0);
    for (auto& other : others) other.join();
  });
}

inline double memcpy_rate(const MemoryCase& at, std::byte* to, const std::byte* from) {
  return copy_rate(at, to, from, [](void* a, const void* b, std::size_t n) { std::memcpy(a, b, n); });
}

inline double stream_rate(const MemoryCase& at, std::byte* to, const std::byte* from) {
  return copy_rate(at, to, from, [](void* a, const void* b, std::size_t n) { stream_copy(a, b, n); });
}

/// The mover's tiers are 0 (from) and 1 (to).
inline double mover_rate(const MemoryCase& at, Mover& mover) {
  const Bytes bytes{all_bytes(at)};
  return rate(repeats(at) * bytes.count, [&] {
    for (std::size_t i = 0; i < repeats(at); ++i) {
      const std::size_t offset = place(at, i);
      mover.move({{{{0}, offset, bytes}, {{1}, offset, bytes}}});
    }
  });
}

}  // namespace terrace::bench

// SPDX-License-Identifier: Apache-2.0
// Random extents to move between tiers, for tests that keep a shadow of every byte.
#pragma once

#include <array>
#include <random>
#include <vector>

#include "rig.hpp"

namespace terrace::testing {

/// A move whose offsets and length are multiples of 4096, 512, 64 or 1 and fit into half a tier. Moves within
/// one tier go from its lower to its upper half, so that they never overlap.
inline Move random_move(std::mt19937_64& random, std::uint32_t from, std::uint32_t to, std::uint64_t half,
                        std::uint64_t most) {
  const auto pick = [&](std::uint64_t below) { return random() % below; };
  const auto unit = std::array<std::uint64_t, 4>{4096, 512, 64, 1}[pick(4)];
  const std::uint64_t bytes = (1 + pick(most / unit)) * unit;
  const std::uint64_t first = pick((half - bytes) / unit + 1) * unit;
  const auto other = pick(2) == 0 ? unit : 1;
  const std::uint64_t second = half + pick((half - bytes) / other + 1) * other;
  return exact(from, first, to, second, bytes);
}

inline constexpr std::uint64_t kCell = 5003;  // no multiple of anything: neighbouring cells share blocks
inline constexpr std::uint64_t kCells = 12;   // of each thread in each tier

/// Moves between the cells of one thread in all tiers; in one batch no cell is written twice, or read and
/// written.
inline std::vector<Move> random_batch(std::mt19937_64& random, unsigned thread, std::uint32_t tiers) {
  std::vector<int> use(kCells * tiers, 0);  // 1 = read, 2 = written
  std::vector<Move> batch;
  for (int i = 0; i < 8; ++i) {
    const std::uint64_t from = random() % use.size(), to = random() % use.size();
    if (from == to || use[from] == 2 || use[to] != 0) continue;
    use[from] = 1;
    use[to] = 2;
    const std::uint64_t first = thread * kCells;
    const std::uint64_t bytes = random() % 2 == 0 ? kCell : 1 + random() % kCell;
    batch.push_back(exact(static_cast<std::uint32_t>(from / kCells), (first + from % kCells) * kCell,
                          static_cast<std::uint32_t>(to / kCells), (first + to % kCells) * kCell, bytes));
  }
  return batch;
}

}  // namespace terrace::testing

// SPDX-License-Identifier: Apache-2.0
// Vectors that do not fit in memory are divided into shards that do: near ones into one shard, and those
// between two into both, so that their links join the shards' graphs. Plain data and functions.
#pragma once

#include <cstdint>
#include <vector>

#include "ann/vector_source.hpp"

namespace terrace::ann {

inline constexpr std::uint16_t kNoShard = 0xFFFF;

struct ShardPlan {
  std::uint64_t most_rows = 0;  ///< of a shard
  std::uint32_t shards = 0;
  /// Rows for which each builder has memory, where they are more than a shard's: shards are small enough for
  /// the processor's cache.
  std::uint64_t rows_in_memory = 0;
  std::uint64_t loaded_rows = 0;  ///< whose vectors may be in memory at once while shards are built
};

/// The shards that a row belongs to. A row that equals an earlier one has none.
struct Membership {
  std::uint16_t primary = kNoShard, second = kNoShard;
};

/// Bytes that inserting a row takes while its shard is built.
Bytes shard_row_bytes(std::size_t dimension, std::uint32_t links);

/// Shards of which as many as there are builders are built at once within the memory, beside what is kept for
/// every row. Fails with a sentence that says how much memory would do.
Result<ShardPlan> plan_shards(std::uint64_t rows, std::size_t dimension, const BuildOptions& options,
                              Bytes memory);

/// Assigns every row but those that `left_out` marks. pre: the plan has room for all rows
std::vector<Membership> assign_rows(const VectorSource& source, Metric metric, const ShardPlan& plan,
                                    const std::vector<bool>& left_out, std::uint64_t seed);

}  // namespace terrace::ann

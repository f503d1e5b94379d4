// SPDX-License-Identifier: Apache-2.0
// What the options of a build allow and mean, however it is built. Plain functions.
#pragma once

#include "terrace/ann.hpp"

namespace terrace::ann {

inline constexpr std::uint32_t kMostEf = 1U << 20;

/// Refuses with a sentence what is out of range.
Result<void> check_options(const BuildOptions& options, std::size_t dimension);

/// How many of the nodes are promoted: what HNSW would have above its lowest layer, or as many as fast memory
/// has room for. Fails with a sentence that says how much would do. pre: nodes > 0
Result<std::uint64_t> promoted_for(std::uint64_t nodes, std::uint64_t twins, std::size_t dimension,
                                   const BuildOptions& options);

}  // namespace terrace::ann

// SPDX-License-Identifier: Apache-2.0
// Twins: vectors that are equal, of which the graph holds one. Equal vectors would fill each other's links
// and cut themselves off from the rest; an answer names them all.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "terrace/ann.hpp"

namespace terrace::ann {

struct Twin {
  std::uint32_t id = 0;     ///< of the one in the graph, the smallest of them
  std::uint32_t other = 0;  ///< one more that is equal
  bool operator==(const Twin&) const = default;
};

struct Distinct {
  std::vector<std::uint32_t> ids;  ///< of the vectors that stay, ascending
  std::vector<Twin> twins;         ///< of those that went, by id and then by other
};

struct HashedRow {
  std::uint64_t hash;
  std::uint32_t row;
  auto operator<=>(const HashedRow&) const = default;
};

/// The same for equal vectors.
std::uint64_t hash_of(std::span<const float> vector);
/// The twins among rows, of which `equal` compares those of one hash. Sorted by id, then by other.
std::vector<Twin> find_twins(std::vector<HashedRow> rows,
                             const std::function<bool(std::uint32_t, std::uint32_t)>& equal);

/// Moves the first of all equal vectors together and drops the rest.
Distinct keep_distinct(Vectors& vectors);

}  // namespace terrace::ann

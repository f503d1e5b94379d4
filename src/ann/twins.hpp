// SPDX-License-Identifier: Apache-2.0
// Twins: vectors that are equal, of which the graph holds one. Equal vectors would fill each other's links
// and cut themselves off from the rest; an answer names them all.
#pragma once

#include <cstdint>
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

/// Moves the first of all equal vectors together and drops the rest.
Distinct keep_distinct(Vectors& vectors);

}  // namespace terrace::ann

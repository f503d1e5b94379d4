// SPDX-License-Identifier: Apache-2.0
// Which nodes a search has met: one number for each node, that of the search that met it last. Starting a
// search costs nothing, but for one in 65535, which clears them all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "terrace/bytes.hpp"

namespace terrace::ann {

class Visited {
 public:
  explicit Visited(std::size_t nodes) : met_(nodes, 0) {}
  static constexpr Bytes size_for(std::uint64_t nodes) { return {nodes * sizeof(std::uint16_t)}; }

  void start() {
    if (++search_ != 0) return;
    std::fill(met_.begin(), met_.end(), std::uint16_t{0});
    search_ = 1;
  }
  /// Whether the search meets the node for the first time.
  bool meet(std::uint32_t node) {
    const bool first = met_[node] != search_;
    met_[node] = search_;
    return first;
  }

 private:
  std::vector<std::uint16_t> met_;
  std::uint16_t search_ = 0;
};

}  // namespace terrace::ann

// SPDX-License-Identifier: Apache-2.0
// Which kernels must run before which, so that every one reads what it reads in the given order.
//
// A tensor is memory: what reads it waits for its last writer, and what writes it waits for that writer and
// for all who have read it since. Immutable once made.
#pragma once

#include <cstdint>
#include <vector>

#include "terrace/graph.hpp"

namespace terrace {

class Dependences {
 public:
  /// pre: the graph is valid
  explicit Dependences(const Graph& graph);

  std::size_t size() const { return before_.size(); }
  /// Positions of the kernels that `kernel` directly waits for, ascending.
  const std::vector<std::uint32_t>& before(std::uint32_t kernel) const { return before_[kernel]; }
  /// Positions of the kernels that directly wait for `kernel`, ascending.
  const std::vector<std::uint32_t>& after(std::uint32_t kernel) const { return after_[kernel]; }

  /// The same kernels run backwards in time: the last is at position 0.
  Dependences reversed() const;

 private:
  Dependences() = default;
  std::vector<std::vector<std::uint32_t>> before_, after_;
};

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// From a graph and its vectors to the two parts of an index.
#pragma once

#include <functional>
#include <span>

#include "ann/fast_part.hpp"
#include "ann/layout.hpp"

namespace terrace::ann {

/// Takes the graph's upper layers. `code_bytes`: zero for no codes.
FastPart make_fast_part(Graph& graph, const Rows& rows, std::uint32_t code_bytes, std::uint64_t seed);

/// Of all vectors. pre: count > 0
ElementType element_of(const Rows& rows);

/// The links of a node, and its id and vector unless it is promoted.
void write_record(const Graph& graph, const Rows& rows, const SlowLayout& layout, std::uint32_t node,
                  std::byte* out);

/// The slow part as it lies on a disk, in pieces of whole units, from its beginning on.
class SlowPieces {
 public:
  /// `write` writes what stands at a node's place. pre: the layout is for a disk, or of no nodes
  SlowPieces(const SlowLayout& layout, std::function<void(std::uint32_t node, std::byte* out)> write);

  /// The next piece, valid until the next call and aligned for a disk; an empty one after the last.
  std::span<const std::byte> next();

 private:
  const SlowLayout layout_;
  const std::function<void(std::uint32_t, std::byte*)> write_;
  std::vector<std::byte> memory_;
  std::span<std::byte> piece_;
  std::uint64_t offset_ = 0;
  std::uint32_t node_ = 0;
};

}  // namespace terrace::ann

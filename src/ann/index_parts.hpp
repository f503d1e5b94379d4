// From a graph and its vectors to the two parts of an index.
#pragma once

#include <functional>
#include <span>

#include "ann/searcher.hpp"

namespace terrace::ann {

FastPart make_fast_part(Graph& graph, const Rows& rows);

/// Writes the slow part of nodes `first` to `last` - 1 at their places, relative to `memory` as the place of
/// byte `start`. Bytes between records are left alone.
void write_slow_part(const Graph& graph, const Rows& rows, const SlowLayout& layout, std::uint64_t start,
                     std::uint32_t first, std::uint32_t last, std::byte* memory);

/// The whole slow part in pieces of whole units, from its beginning on. pre: the layout is for a disk
void for_each_piece(const Graph& graph, const Rows& rows, const SlowLayout& layout,
                    const std::function<void(std::uint64_t offset, std::span<const std::byte> piece)>& take);

}  // namespace terrace::ann

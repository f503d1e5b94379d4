// A program: a graph made ready for this processor, and where each of its tensors lies in one arena. Plain
// data; nothing is allocated yet.
#pragma once

#include <cstdint>
#include <vector>

#include "terrace/graph.hpp"

namespace terrace {

struct Program {
  Graph graph;
  std::vector<std::uint64_t> offsets;  ///< of each tensor in the arena
  Bytes arena;
  Bytes peak;            ///< the most bytes live at once: no arena is smaller
  unsigned threads = 1;  ///< it was made for
  Bytes alignment{64};   ///< of offsets: a cache line, which vectors like best; what
                         ///< lies between two tensors belongs to the first
};

/// Threads 0: as many as this process can keep busy. Fails for graphs with operations that are not ours. A
/// library built without oneDNN has nothing of this header. Takes up to 64 MiB for operands on which variants
/// are tried, and gives them back.
Result<Program> compile(const Graph& graph, unsigned threads = 0);
/// The same with tensors that begin at multiples of `alignment`, which takes more memory. With 4 KiB every
/// page holds one tensor at a time, so that accesses of all of them can be counted. pre: a power of two, at
/// least 64
Program aligned(Program program, Bytes alignment);

}  // namespace terrace

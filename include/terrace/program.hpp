// SPDX-License-Identifier: Apache-2.0
// A program: a graph made ready for a backend's kernels, and where each of its tensors lies in one arena.
// Plain data; nothing is allocated yet.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "terrace/graph.hpp"
#include "terrace/machine.hpp"
#include "terrace/profile.hpp"

namespace terrace {

class Backend;
struct Plan;

struct Program {
  Graph graph;
  std::shared_ptr<const Backend> backend;  ///< what its kernels run on; none: it is not compiled
  std::vector<std::uint64_t> offsets;      ///< of each tensor in the arena
  Bytes arena;
  Bytes peak;            ///< the most bytes live at once: no arena is smaller
  unsigned threads = 1;  ///< how many it was made for
  Bytes alignment{64};   ///< of offsets: a cache line, which vectors like best; what
                         ///< lies between two tensors belongs to the first
};

/// Compiles a graph for this computer's processor. Threads 0: as many as this process can keep busy. Fails
/// for graphs with operations that are not neural networks', and in a library built without oneDNN. Takes up
/// to 64 MiB for operands on which variants are tried, and gives them back.
Result<Program> compile(const Graph& graph, unsigned threads = 0);
/// Compiles a graph for kernels of another kind, such as callbacks (foreign.hpp). Fails where the backend
/// cannot run the graph.
Result<Program> compile(const Graph& graph, std::shared_ptr<const Backend> backend, unsigned threads = 0);
/// Returns the program with tensors that begin at multiples of `alignment`, which takes more memory. With 4
/// KiB every page holds one tensor at a time, so that accesses of all of them can be counted. pre: a power of
/// two, at least 64
Program aligned(Program program, Bytes alignment);

/// Returns the program with the variant of each kernel that the plan runs, the first where it runs several:
/// with all memory it computes what the plan computes, bit by bit, where variants differ in their bits.
Program as_planned(Program program, const Plan& plan);

/// Measures how long each kernel of the program takes on this computer with its operands in the fastest tier.
/// Takes no more memory than `memory`, and gives it back. Kernels with tokens are estimated. Fails where the
/// operands of a kernel are larger than that.
Result<Profile> measure(const Program& program, const Machine& machine, Bytes memory);

}  // namespace terrace

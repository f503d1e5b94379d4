// SPDX-License-Identifier: Apache-2.0
// A placement problem laid out for speed: the edges of all tensors in one array, memory in shares of the
// fast tier's capacity, and only what couples tensors with kernels.
//
//   row     memory of one pool at one moment: first those of fast memory, then those of the next pool
//   link    an operand's place in some tier or a faster one, where some configuration of its kernel asks for
//           that and it may be elsewhere, too: what has a multiplier. Where kernels can use three tiers an
//           operand has up to two, one after the other, the first for the fastest
//   group   links of one kernel that its configurations ask for together or not at all; a bit of their masks
//   slot    what an edge tells of a link: `link` for kept, `none() + 1 + link` for not, `none()` for nothing.
//           An edge tells of one link: where an operand has two, there is an edge for each
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planners/autotm/model/instance.hpp"

namespace terrace::autotm {

/// The cost of what cannot be.
constexpr double kImpossible = std::numeric_limits<double>::infinity();

struct Flat {
  struct Edge {
    std::uint32_t from, to;    ///< nodes of the tensor
    std::uint32_t first, end;  ///< takes memory of these rows, without `end`
    std::uint32_t slot;
    std::uint32_t beside;  ///< the kernel that the move overlaps with; kernels.size(): none
    double wait;           ///< the seconds of the move that no kernel can hide
  };
  /// How much of a move kernels can hide, in seconds.
  struct Hidden {
    double share;   ///< what the kernel beside it may hide
    double slower;  ///< the part of the share that it hides only if it runs slower than it could
  };
  struct Tensor {
    std::uint32_t first, end;  ///< of edges
    std::uint32_t nodes;       ///< the last is the end of every path
    std::int64_t bytes;
    double size;
  };
  struct Configuration {
    std::uint64_t mask;  ///< of groups that it asks for
    double time, scratch;
    std::int64_t bytes;  ///< of scratch
    std::uint32_t index;
    std::uint32_t row;  ///< of its scratch
  };
  struct Kernel {
    std::uint32_t first_link, end_link;
    std::uint32_t first, end;  ///< of configurations, which ascend in time
    std::uint32_t groups;
    bool has_scratch = false;
    bool overlaps = false;  ///< some move may be beside it
  };
  struct Link {
    std::uint32_t kernel, group, tensor;
    double worth;        ///< about how many seconds the kernel gains by it
    std::uint32_t more;  ///< links of the same operand that follow
    bool is_first;       ///< of its operand
  };

  std::uint32_t none() const { return static_cast<std::uint32_t>(links.size()); }

  std::uint32_t rows() const { return static_cast<std::uint32_t>(room.size()); }
  std::uint32_t pool(std::uint32_t row) const { return row / moments; }

  /// Returns the edges without an alternative: the node that one leaves has one edge in and this one out.
  std::vector<std::uint32_t> going_on() const;

  /// Estimates what a unit of memory is worth at one moment, in seconds: the worth of all links, spread
  /// evenly.
  double memory_worth() const;

  bool asks(const Configuration& one, std::uint32_t link) const {
    return (one.mask >> links[link].group & 1U) != 0;
  }
  /// Returns whether some move may be beside a kernel.
  bool overlaps() const {
    return std::any_of(kernels.begin(), kernels.end(), [](const Kernel& kernel) { return kernel.overlaps; });
  }
  bool is_beside(const Edge& edge) const { return edge.beside != kernels.size(); }
  double time(const Edge& edge) const { return edge.wait + hidden_of(edge).share; }
  const Hidden& hidden_of(const Edge& edge) const {
    return hidden[static_cast<std::size_t>(&edge - edges.data())];
  }

  std::vector<Edge> edges;
  std::vector<Hidden> hidden;           ///< by edge
  std::vector<std::uint32_t> original;  ///< by edge, its place in the tensor's edges; kNone: ends a path
  std::vector<Tensor> tensors;
  std::vector<Configuration> configurations;
  std::vector<Kernel> kernels;
  std::vector<Link> links;
  std::uint32_t moments = 0;
  std::uint32_t most_nodes = 0;
  std::vector<std::int64_t> capacity;  ///< by pool
  std::vector<double> room;            ///< by row: the capacity in units
  double unit = 1;                     ///< bytes that memory is measured in
};

/// Lays an instance out. Where the paths of a kernel's operands allow none of its configurations, that kernel
/// has none in the result, and the problem has no solution.
Flat flatten(const Instance& instance);

}  // namespace terrace::autotm

// A placement problem laid out for speed: the edges of all tensors in one array, memory in shares of the
// capacity, and only what couples tensors with kernels.
//
//   link    an operand whose place in fast memory some configuration of its kernel asks for, and which may be
//   in
//           either tier: what has a price
//   group   links of one kernel that its configurations ask for together or not at all; a bit of their masks
//   slot    what an edge tells of a link: `link` for fast, `none() + 1 + link` for slow, `none()` for nothing
#pragma once

#include <cstdint>
#include <vector>

#include "planners/autotm/instance.hpp"

namespace terrace::autotm {

struct Flat {
  struct Edge {
    std::uint32_t from, to;    ///< nodes of the tensor
    std::uint32_t first, end;  ///< in fast memory at these moments, without `end`
    std::uint32_t slot;
    std::uint32_t beside;  ///< the kernel that the move overlaps with; kernels.size(): none
    double wait;           ///< of the move, in seconds, what no kernel can hide
  };
  /// Of a move, in seconds.
  struct Hidden {
    double share;   ///< what the kernel beside it may hide
    double slower;  ///< of the share, what it may only hide where it takes longer than it could
  };
  struct Tensor {
    std::uint32_t first, end;  ///< of edges
    std::uint32_t nodes;       ///< the last is the end of every path
    std::int64_t bytes;
    double size;
  };
  struct Configuration {
    std::uint64_t mask;  ///< of groups that it wants in fast memory
    double time, scratch;
    std::int64_t bytes;  ///< of scratch
    std::uint32_t index;
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
    double worth;  ///< about what the kernel gains by it, in seconds
  };

  std::uint32_t none() const { return static_cast<std::uint32_t>(links.size()); }

  /// Of a unit at one moment, about, in seconds: what all links are worth, spread evenly.
  double memory_worth() const;

  bool asks(const Configuration& one, std::uint32_t link) const {
    return (one.mask >> links[link].group & 1U) != 0;
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
  std::int64_t capacity = 0;
  double unit = 1;  ///< bytes that memory is measured in
  double room = 0;  ///< the capacity in units: 1, or 0 where there is none
};

/// A kernel without configurations has none that its operands' paths allow: there is no solution.
Flat flatten(const Instance& instance);

}  // namespace terrace::autotm

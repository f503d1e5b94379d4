// The tensors of a training step, told apart as 000 section 3.2 does: how long they live, how large they are,
// how often they are used. Pure functions.
//
//   small     below a page
//   lifetime  layer steps in which it is live (lifetimes.hpp)
//   accesses  sweeps over it in memory, reads and writes, in one step
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "terrace/profile.hpp"

namespace terrace {

constexpr Bytes kSmall{4096};

struct TensorFacts {
  Bytes bytes;
  std::uint32_t first = 0, last = 0;  ///< kernels between which it is live, both included
  std::uint32_t layers = 0;           ///< its lifetime; 0: it outlives the step
  std::string used_in;                ///< the layer steps that use it, as text that compares
  double accesses = 0;
};

/// By tensor; those that no kernel uses are left out. `counted`: by kernel and operand, as a trainer's
/// counted step gives it; empty: accesses are as the graph says.
std::vector<TensorFacts> tensor_facts(const Graph& graph, const KernelAccesses& counted);

/// Tensors of one kind: how many, how large, and how much of that is small ones.
struct Bucket {
  std::string label;
  std::size_t tensors = 0, small_tensors = 0;
  Bytes bytes, small_bytes;
};
using Distribution = std::vector<Bucket>;

Distribution by_lifetime(std::span<const TensorFacts> facts);
Distribution by_size(std::span<const TensorFacts> facts);
Distribution by_accesses(std::span<const TensorFacts> facts);

/// Which bucket of by_accesses() that many accesses fall into.
std::size_t access_bucket(double accesses);
/// The same for a lifetime and by_lifetime().
std::size_t lifetime_bucket(std::uint32_t layers);

/// The most bytes live at once, packed without a gap and with pages of their own (000 Table 1).
struct Footprint {
  Bytes original, in_pages;
};
enum class Which { all, small };
Footprint footprint(std::span<const TensorFacts> facts, Which which);

}  // namespace terrace

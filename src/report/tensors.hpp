// Classifies the tensors of a training step as 000 section 3.2 does: by lifetime, size and number of
// accesses. The functions are pure.
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
  std::uint32_t layers = 0;           ///< its lifetime in layers; 0 if it outlives the step
  std::string used_in;                ///< the layer steps that use it, as text that can be compared
  double accesses = 0;
};

/// Returns one entry per tensor, except for those that no kernel uses. `counted` holds accesses by kernel and
/// operand, from a trainer's counted step; if it is empty, the graph's own estimates are used.
std::vector<TensorFacts> tensor_facts(const Graph& graph, const KernelAccesses& counted);

/// A Bucket counts the tensors of one class and their bytes, with the share of small ones.
struct Bucket {
  std::string label;
  std::size_t tensors = 0, small_tensors = 0;
  Bytes bytes, small_bytes;
};
using Distribution = std::vector<Bucket>;

Distribution by_lifetime(std::span<const TensorFacts> facts);
Distribution by_size(std::span<const TensorFacts> facts);
Distribution by_accesses(std::span<const TensorFacts> facts);

/// Returns the bucket of by_accesses() for a number of accesses.
std::size_t access_bucket(double accesses);
/// Returns the bucket of by_lifetime() for a lifetime.
std::size_t lifetime_bucket(std::uint32_t layers);

/// The peak of live bytes, with tensors packed tightly and with each tensor in pages of its own (000 Table
/// 1).
struct Footprint {
  Bytes original, in_pages;
};
enum class Which { all, small };
Footprint footprint(std::span<const TensorFacts> facts, Which which);

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// When each tensor of a graph is needed: by which kernels, from when to when, and how many bytes at once.
//
// A tensor is live from its first use to its last; a persistent one always; an input from the start of the
// step to its last use; a result from its first use to the end. Positions are indices into graph.kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "terrace/graph.hpp"

namespace terrace {

struct Lifetime {
  KernelId producer;                  ///< the first to write it; none for inputs and persistent tensors
  std::vector<KernelId> users;        ///< all that read or write it, in order
  std::uint32_t first = 0, last = 0;  ///< live in kernels first..last, both included
  std::uint32_t first_step = 0, last_step = 0;  ///< the same in layer steps
  bool used = false;                            ///< a tensor without users is never live

  std::uint32_t kernels() const { return last - first + 1; }
  std::uint32_t layer_steps() const { return last_step - first_step + 1; }
};

class Lifetimes {
 public:
  explicit Lifetimes(const Graph& graph);

  const Lifetime& operator[](TensorId id) const { return lifetimes_[id.index]; }
  std::size_t size() const { return lifetimes_.size(); }

  /// Bytes live during kernel `position`.
  const std::vector<Bytes>& live_bytes() const { return live_; }
  /// The most bytes live at once, and the first kernel where they are.
  Bytes peak_bytes() const { return peak_; }
  KernelId peak_kernel() const { return peak_kernel_; }

  /// A layer step is a run of consecutive kernels of one layer and phase: layers in the order they are
  /// executed, forward and backward counted apart.
  std::uint32_t layer_step(KernelId kernel) const { return steps_[kernel.index]; }
  std::uint32_t layer_steps() const { return steps_.empty() ? 0 : steps_.back() + 1; }

 private:
  std::vector<Lifetime> lifetimes_;
  std::vector<Bytes> live_;
  std::vector<std::uint32_t> steps_;
  Bytes peak_;
  KernelId peak_kernel_;
};

}  // namespace terrace

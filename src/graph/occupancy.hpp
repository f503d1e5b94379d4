// SPDX-License-Identifier: Apache-2.0
// How many bytes are live while kernels run in an order that is still being chosen.
//
// A tensor becomes live with the first of its users that runs and is freed with the last, in whatever order
// they run: the same counting as Lifetimes, one kernel at a time. Each run costs as much as the kernel has
// operands, on average.
#pragma once

#include <cstdint>
#include <vector>

#include "terrace/graph.hpp"

namespace terrace {

/// The tensors of a graph as far as memory is concerned. Unused ones count for nothing.
struct MemoryUse {
  struct Tensor {
    std::int64_t bytes = 0;
    std::vector<std::uint32_t> users;              ///< each once, ascending
    bool live_before = false, live_after = false;  ///< the first kernel, the last one
  };
  std::vector<Tensor> tensors;
  std::vector<std::vector<std::uint32_t>> of_kernel;  ///< the tensors it uses, each once

  explicit MemoryUse(const Graph& graph);
  /// Returns the use of the same kernels run backwards in time: the last is at position 0.
  MemoryUse reversed() const;
};

class Occupancy {
 public:
  /// `use` must outlive this.
  explicit Occupancy(const MemoryUse& use);

  /// Returns how many more bytes are live after `kernel` than before it, were it the next to run.
  std::int64_t change(std::uint32_t kernel) const { return change_[kernel]; }
  std::int64_t peak_bytes() const { return peak_; }

  /// Runs a kernel. Afterwards `touched()` are those not yet run whose change has become less; it never
  /// grows. pre: it has not run
  void run(std::uint32_t kernel);
  const std::vector<std::uint32_t>& touched() const { return touched_; }

 private:
  void make_live(std::uint32_t tensor);
  void count_use(std::uint32_t tensor);
  void lower(std::uint32_t kernel, std::int64_t bytes);

  const MemoryUse& use_;
  std::vector<std::int64_t> change_;
  std::vector<std::size_t> remaining_;  ///< users of each tensor that have not run
  std::vector<bool> live_, done_;
  std::vector<std::uint32_t> touched_;
  std::int64_t bytes_ = 0, peak_ = 0;
};

}  // namespace terrace

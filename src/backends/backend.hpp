// SPDX-License-Identifier: Apache-2.0
// Backend: turns the kernels of a graph into kernels that run. All that is particular to one library of
// kernels, its layouts, implementations and threads, is behind this; the executor, the profiler and the
// trainer know nothing else of it.
//
//   lower       a graph of operations becomes one whose kernels this backend can run as they are
//   variants    implementations of a kernel that give the same bits
//   instantiate kernels of a lowered graph become runnable
//   keys        what measured times depend on, beside the kernel and the computer
//   layouts     how a stored tensor's elements lie, seen from outside
//
// Backends are constant and shared. Those that compute with a team of threads use one team for the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/kernel.hpp"
#include "terrace/graph.hpp"

namespace terrace {

/// By kernel, then by variant.
using Kernels = std::vector<std::vector<std::unique_ptr<RunnableKernel>>>;

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// For so many threads. Fails where an operation or a type is not one of this backend's. pre: a valid graph
  /// without layouts
  virtual Result<Graph> lower(const Graph& graph, unsigned threads) const = 0;
  /// Adds variants that give the bits of the first one. pre: `lower` made the graph for as many threads as
  /// are in use
  virtual Graph with_variants(Graph graph) const { return graph; }

  /// All kernels of the graph, which outlives them. pre: `lower` made the graph for as many threads as are in
  /// use; passes may have reordered it since
  virtual Kernels instantiate(const Graph& graph) const = 0;
  /// The first variant of one kernel.
  virtual std::unique_ptr<RunnableKernel> instantiate(const Graph& graph, const Kernel& kernel) const = 0;
  /// Kernels compute with so many threads from here on.
  virtual void use_threads(unsigned threads) const = 0;

  /// Returns whether `instantiate` has something for such a kernel.
  virtual bool can_run(const Kernel& kernel) const = 0;
  /// Returns the version of what computes: measured times hold for one version.
  virtual std::string version() const = 0;
  /// Returns whether kernels that differ in this attribute alone may take different times.
  virtual bool changes_time(std::string_view /*attribute*/) const { return true; }
  /// Kernels are measured with integers from zero up to below this.
  virtual std::int64_t integers_below(const Kernel& /*kernel*/) const { return 1; }

  /// Copies a tensor that is persistent or a result between its own layout and the row-major one of its
  /// shape. These two know the layout "" alone.
  virtual void from_row_major(const Graph& graph, TensorId id, const std::byte* row_major,
                              std::byte* stored) const;
  virtual void to_row_major(const Graph& graph, TensorId id, const std::byte* stored,
                            std::byte* row_major) const;
};

}  // namespace terrace

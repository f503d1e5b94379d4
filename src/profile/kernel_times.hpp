// SPDX-License-Identifier: Apache-2.0
// Where the time of a step goes: per kernel and per kind of operation, against what the computer could do.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "profile/rates.hpp"
#include "terrace/graph.hpp"

namespace terrace {

/// One kernel, or all of one kind, in one step.
struct KernelTime {
  std::size_t kernels = 0;
  Seconds time{};
  double flops = 0;
  Bytes touched;    ///< read and written
  Seconds bound{};  ///< the sum of each kernel's own: see Rates

  KernelTime& operator+=(const KernelTime& other);
  double flops_per_second() const;
  BytesPerSecond bandwidth() const;
  /// Returns how near the kernel is to the roofline: 1 is on it, and above it are kernels whose operands were
  /// still in a cache.
  double roofline_share() const;
};

struct OperationTime {
  std::string operation;
  KernelTime all;
};

/// One for each kernel of the graph. `times` are sums over `steps` steps. pre: one time for each kernel
std::vector<KernelTime> kernel_times(const Graph& graph, std::span<const Seconds> times, std::uint64_t steps,
                                     const Rates& rates);

/// The same by kind of operation, the most costly first.
std::vector<OperationTime> by_operation(const Graph& graph, std::span<const KernelTime> kernels);

/// The layouts of a kernel's operands in short, `aBcd16b ABcd16b16a > aBcd16b`; `row` is row-major.
std::string layouts_of(const Kernel& kernel);
/// Who implements it: what the kernels' library calls it, or `own`.
std::string implementation_of(const Kernel& kernel);

}  // namespace terrace

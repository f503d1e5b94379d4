// SPDX-License-Identifier: Apache-2.0
// KernelBenchmark: runs one kernel at a time on real memory, to be timed with its operands in the caches and
// out of them.
//
// An arena in each tier serves all kernels, one after the other: operands from its start, what is left is
// streamed over to empty the caches. Operands hold harmless values: numbers around one, which no kernel turns
// into something the processor is slow with, valid indices, and zeros for masks and winners. Uses the
// backend's team; one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "backends/backend.hpp"
#include "profile/samples.hpp"
#include "terrace/graph.hpp"
#include "terrace/profile.hpp"
#include "terrace/tier.hpp"

namespace terrace {

/// Returns how many bytes the operands and the workspace of one kernel take, each tensor once, as a benchmark
/// lays them out.
Bytes benchmark_bytes(const Graph& graph, const Kernel& kernel);
/// The same by tier, up to the last one that is used. pre: one tier for each operand, one for each tensor
std::vector<Bytes> benchmark_bytes(const Graph& graph, const Kernel& kernel, std::span<const TierId> tiers);
/// Returns how much memory is streamed over to empty the caches: twice the last one.
Bytes flush_bytes();

class KernelBenchmark {
 public:
  /// Takes an arena in tier 0 alone. Fails where the system has not as much memory.
  static Result<KernelBenchmark> open(const Backend& backend, Bytes arena);
  /// Uses memory that is there already as tier 0. pre: it is addressable
  KernelBenchmark(const Backend& backend, std::unique_ptr<Tier> memory);
  /// Adds the memory of a further tier. pre: it is addressable, and not there yet
  void add(TierId id, std::unique_ptr<Tier> memory);
  bool has(TierId id) const { return id.index < memory_.size() && memory_[id.index] != nullptr; }

  /// Measures until the samples are enough (samples.hpp): cold after streaming over the arena, warm at once
  /// after that. pre: a kernel of a lowered graph, benchmark_bytes() within the arena
  PlacedTime measure(const Graph& graph, const Kernel& kernel);
  /// The same with operands in these tiers: inputs, outputs, workspace. A tier of declared rates takes no
  /// less than these ask for, as in a run; nobody sleeps for it, since a single sleep ends too late by more
  /// than many a kernel takes. pre: as above, in each tier
  PlacedTime measure(const Graph& graph, const Kernel& kernel, std::span<const TierId> tiers,
                     const Effort& effort = {});
  /// Returns what an operand of the kernel measured last holds now. pre: it is one, and was in tier 0 with
  /// all others
  std::span<const std::byte> contents(const Graph& graph, const Kernel& kernel, TensorId id) const;

 private:
  /// `used`: how many bytes at the start of each tier's arena the operands take.
  void empty_caches(std::span<const Bytes> used);

  const Backend* backend_;                     ///< borrowed
  std::vector<std::unique_ptr<Tier>> memory_;  ///< by tier; nullptr: not there
  std::vector<float> numbers_;                 ///< what operands are filled with
};

}  // namespace terrace

// Trial: one kernel at a time on real memory, to be timed with its operands in the caches and out of them.
//
// One arena serves all kernels, one after the other: operands from its start, what is left is streamed over
// to empty the caches. Operands hold harmless values: numbers around one, which no kernel turns into
// something the processor is slow with, valid indices, and zeros for masks and winners. Uses OpenMP's team;
// one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "kernels/kernel.hpp"
#include "terrace/graph.hpp"
#include "terrace/profile.hpp"
#include "terrace/tier.hpp"

namespace terrace {

/// Of the operands and the workspace of one kernel, each once, as a trial lays them out.
Bytes trial_bytes(const Graph& graph, const Kernel& kernel);
/// How much memory is streamed over to empty the caches: twice the last one.
Bytes flush_bytes();

class Trial {
 public:
  /// Fails where there is no such memory.
  static Result<Trial> open(Bytes arena);

  /// Measures until the samples are enough (samples.hpp): cold after streaming over the arena, warm at once
  /// after that. pre: a kernel of a lowered graph, trial_bytes() within the arena
  PlacedTime measure(const Graph& graph, const Kernel& kernel);
  /// What an operand of the kernel measured last holds now. pre: it is one
  std::span<const std::byte> contents(const Graph& graph, const Kernel& kernel, TensorId id) const;

 private:
  explicit Trial(std::unique_ptr<Tier> memory);
  std::unique_ptr<Tier> memory_;
  std::vector<float> numbers_;  ///< what operands are filled with
};

}  // namespace terrace

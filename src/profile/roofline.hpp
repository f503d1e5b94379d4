// SPDX-License-Identifier: Apache-2.0
// The roofline of a kernel: no faster than its arithmetic, and no faster than its operands can be read and
// written where they lie. Machines are valid ones: their rates are above zero.
#pragma once

#include <cstdint>

#include "graph/variant.hpp"
#include "terrace/graph.hpp"
#include "terrace/machine.hpp"

namespace terrace {

/// What one run does to one operand.
struct OperandUse {
  Bytes read, written;
};

/// Inputs, outputs and the workspace, which is written and read once.
std::size_t operand_count(const Kernel& kernel);
/// pre: operand < operand_count(kernel)
OperandUse operand_use(const Graph& graph, const Kernel& kernel, std::size_t operand);

/// How a kernel reads its operands: on tiles (machine.hpp), or once from end to end.
enum class Pattern { streaming, tiled };
Pattern pattern_of(const Graph& graph, const Kernel& kernel);

/// Returns what one operand takes in a tier when nothing else happens: the latency once, then the bytes.
Seconds access_time(const MachineTier& tier, OperandUse use, Pattern pattern);

/// The type whose arithmetic rate counts: that of the kernel's first operand.
DataType arithmetic_type(const Graph& graph, const Kernel& kernel);

/// All operands in tier 0.
Seconds roofline(const Graph& graph, const Kernel& kernel, const Machine& machine);

}  // namespace terrace

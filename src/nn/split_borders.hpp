// SPDX-License-Identifier: Apache-2.0
// How large the parts are.
#pragma once

#include "nn/split_groups.hpp"

namespace terrace {

/// Where the parts of a group begin, and after the last its end.
using Borders = std::vector<std::int64_t>;

/// Parts of at most half of `limit` where that can be, else of `limit`, as few as possible and nearly alike.
/// Fails where there are none, naming the kernel. pre: the group can be split
Result<Borders> borders_of(const Graph& graph, const CutGroup& group, Bytes limit);

/// Returns the bytes of all tensors that a kernel touches.
Bytes operand_bytes(const Graph& graph, const Kernel& kernel);

}  // namespace terrace

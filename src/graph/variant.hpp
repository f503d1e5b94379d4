// SPDX-License-Identifier: Apache-2.0
// The variants of a kernel, where a list may also be empty.
#pragma once

#include <cstddef>
#include <cstdint>

#include "terrace/graph.hpp"

namespace terrace {

/// An empty list of variants stands for one without a name.
std::size_t variant_count(const Kernel& kernel);

/// Returns whether it runs without the workspace that other variants of the kernel work in. pre: the kernel
/// has that variant
bool runs_without_workspace(const Kernel& kernel, std::uint32_t variant);

/// The kernel with that variant alone, and with no workspace where that needs none. pre: as above
Kernel as_variant(const Kernel& kernel, std::uint32_t variant);

/// Returns whether every variant has the operand: not so a workspace that one of them does without.
bool is_needed(const Kernel& kernel, TensorId operand);

}  // namespace terrace

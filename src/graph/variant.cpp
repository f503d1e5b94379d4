// SPDX-License-Identifier: Apache-2.0
#include "graph/variant.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace terrace {

std::size_t variant_count(const Kernel& kernel) { return std::max<std::size_t>(1, kernel.variants.size()); }

bool runs_without_workspace(const Kernel& kernel, std::uint32_t variant) {
  check(variant < variant_count(kernel), "the kernel has that variant");
  return kernel.workspace && kernel.variants.size() > 1 && kernel.variants[variant].workspace == Bytes{};
}

Kernel as_variant(const Kernel& kernel, std::uint32_t variant) {
  Kernel one = kernel;
  if (runs_without_workspace(kernel, variant)) one.workspace = {};
  if (!kernel.variants.empty()) one.variants = {kernel.variants[variant]};
  return one;
}

bool is_needed(const Kernel& kernel, TensorId operand) {
  if (operand != kernel.workspace) return true;
  for (std::uint32_t i = 0; i < variant_count(kernel); ++i) {
    if (runs_without_workspace(kernel, i)) return false;
  }
  return true;
}

}  // namespace terrace

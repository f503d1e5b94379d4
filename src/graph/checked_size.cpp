// SPDX-License-Identifier: Apache-2.0
#include "graph/checked_size.hpp"

#include <algorithm>

namespace terrace {

std::optional<Bytes> checked_size(const Shape& shape, DataType type) {
  // Zeros count as one here: the extents behind one are multiplied on their own elsewhere.
  auto product = static_cast<std::int64_t>(size_of(type).count);
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (__builtin_mul_overflow(product, std::max<std::int64_t>(extent, 1), &product)) return std::nullopt;
  }
  return size_of(type) * static_cast<std::uint64_t>(shape.elements());
}

}  // namespace terrace

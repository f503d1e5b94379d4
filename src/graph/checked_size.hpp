// SPDX-License-Identifier: Apache-2.0
// Sizes of tensors that others declared: products that would not fit are found instead of made.
#pragma once

#include <optional>

#include "terrace/shape.hpp"

namespace terrace {

/// The bytes of that many elements; none where an extent is negative, or where the product of any of the
/// extents does not fit in 63 bits.
std::optional<Bytes> checked_size(const Shape& shape, DataType type);

}  // namespace terrace

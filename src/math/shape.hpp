// SPDX-License-Identifier: Apache-2.0
// Names for the sizes that several kernels share. Every matrix is dense and row-major.
#pragma once

#include <cstdint>

namespace terrace::math {

/// A matrix [rows, columns].
struct Rows {
  std::int64_t rows = 0, columns = 0;
};

/// A row with this label takes no part in a loss, as in PyTorch.
inline constexpr std::int32_t kIgnoredLabel = -100;

}  // namespace terrace::math

// SPDX-License-Identifier: Apache-2.0
// The header of numpy's .npy files: a magic number, a version, and a Python dictionary of three keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ann/element.hpp"
#include "terrace/result.hpp"

namespace terrace::ann {

struct Matrix {
  std::uint64_t rows = 0, columns = 0;
  ElementType type = ElementType::f32;
};

struct NpyHeader {
  Matrix matrix;
  std::size_t bytes = 0;  ///< where the values begin
};

/// Fails with what is wrong, to be read after the file's name: `has a header ...`.
Result<NpyHeader> parse_npy_header(std::span<const std::byte> file);
/// Padded so that the values are aligned as numpy has them.
std::vector<std::byte> print_npy_header(const Matrix& matrix);

}  // namespace terrace::ann

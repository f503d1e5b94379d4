// SPDX-License-Identifier: Apache-2.0
// Files of ann-benchmarks: HDF5 with one matrix for the vectors (`train`), one for the queries (`test`).
// Where a matrix lies in its file is asked of the HDF5 library, which is loaded when the first such file is
// opened, so that one program runs with it and without; rows are then read as those of any other format.
// Plain functions, thread-safe.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "ann/npy_header.hpp"

namespace terrace::ann {

/// A path such as `glove.hdf5:test`.
struct Hdf5Name {
  std::filesystem::path file;
  std::string matrix = "train";
};

/// Nothing where the path's ending is no `.hdf5` or `.h5`, with or without the name of a matrix.
std::optional<Hdf5Name> parse_hdf5_name(const std::filesystem::path& path);

struct Hdf5Matrix {
  Matrix matrix;
  std::uint64_t start = 0;  ///< where its values begin, all in one piece
};

/// Fails with what is wrong, to be read after the file's name, where the library or the matrix is missing,
/// the file is damaged, or values are neither floats nor bytes or not in one piece.
Result<Hdf5Matrix> find_hdf5_matrix(const Hdf5Name& name);

}  // namespace terrace::ann

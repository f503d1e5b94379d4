// SPDX-License-Identifier: Apache-2.0
// Files of vectors, as others write them. Nothing that a file declares is trusted: memory grows with the
// bytes that are there. Plain functions, thread-safe.
//
//   fvecs, bvecs   each row: its dimension (int32), then that many floats or bytes
//   fbin, u8bin    rows and dimension (uint32 each), then all floats or bytes
//   npy            numpy's: a header with type and shape, then all values
#pragma once

#include <optional>
#include <string_view>

#include "terrace/ann.hpp"

namespace terrace::ann {

enum class VectorFormat : std::uint8_t { fvecs, bvecs, fbin, u8bin, npy };

/// By the ending of a path.
std::optional<VectorFormat> format_of(const std::filesystem::path& path);

/// The contents of a file; `name` stands for it in sentences. Values may be anything that a float holds.
Result<Vectors> parse_vectors(VectorFormat format, std::span<const std::byte> file, std::string_view name,
                              std::size_t most = SIZE_MAX);

/// The file that parse_vectors would read. pre: the format holds floats, the vectors are whole rows
std::vector<std::byte> print_vectors(VectorFormat format, const Vectors& vectors);

}  // namespace terrace::ann

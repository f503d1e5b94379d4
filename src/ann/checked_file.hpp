// SPDX-License-Identifier: Apache-2.0
// Files with a checksum for each piece: read front to back, every piece is compared before it is used.
#pragma once

#include <functional>
#include <vector>

#include "ann/manifest.hpp"
#include "base/input_file.hpp"

namespace terrace::ann {

/// Opens a file that must have this size. Fails with one sentence.
Result<InputFile> open_sized(const std::filesystem::path& path, Bytes size);

/// Reads all of `out` from there on. Throws EnvironmentError where the disk fails or the file ends before.
void read_at(const InputFile& file, std::uint64_t offset, std::span<std::byte> out);

/// Calls `take` with each piece and its place. Fails at the first piece that is not what was written; throws
/// EnvironmentError where the disk fails. pre: as many checksums as the file has pieces
Result<void> read_checked(
    const InputFile& file, const std::vector<std::uint32_t>& checksums,
    const std::function<void(std::uint64_t offset, std::span<const std::byte> piece)>& take);

/// Reads the file into places that follow one another, which have its size together, without memory beside
/// them. Fails and throws as read_checked(), and leaves anything in the places then.
Result<void> read_checked_into(const InputFile& file, const std::vector<std::uint32_t>& checksums,
                               std::span<const std::span<std::byte>> places);

/// Writes `size` bytes, which `next` makes one after the other in any portions, and returns their checksums.
/// Fails and throws as replacing a file does.
Result<std::vector<std::uint32_t>> write_checked(const std::filesystem::path& path, Bytes size,
                                                 const std::function<std::span<const std::byte>()>& next);

}  // namespace terrace::ann

// replace_file() writes a file atomically: afterwards, and after a crash in the middle, the path holds the
// old file or the new one, never a part of it. It is thread-safe.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>

#include "terrace/bytes.hpp"
#include "terrace/result.hpp"

namespace terrace {

/// Writes the pieces in order into a new file beside `path`, syncs it to the disk, and renames it to `path`.
/// The disk needs space for both files. A link at `path` is replaced, not followed. Fails with one sentence
/// where the folder does not exist or may not be written to, or `path` does not name a file; throws
/// EnvironmentError where the disk is full or fails. In both cases the old file is untouched.
Result<void> replace_file(const std::filesystem::path& path,
                          std::span<const std::span<const std::byte>> pieces);

/// Pieces that are generated one by one, so that they need not all be in memory: `next` is called until it
/// returns an empty one, and each is used until the next call. An exception from it leaves the old file
/// untouched. pre: together they are `total` bytes long
struct Pieces {
  Bytes total;
  std::function<std::span<const std::byte>()> next;
};
Result<void> replace_file(const std::filesystem::path& path, const Pieces& pieces);

/// Checks whether `replace_file` could start at this path now; fails and throws as it does, and leaves
/// nothing behind.
Result<void> check_replaceable(const std::filesystem::path& path);

}  // namespace terrace

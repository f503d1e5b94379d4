// Writing a file as a whole: after it, and after a crash in the middle of it, the path holds the old file or
// the new one, never a part. Thread-safe.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>

#include "terrace/bytes.hpp"
#include "terrace/result.hpp"

namespace terrace {

/// Writes the pieces one after the other into a new file beside `path`, has the disk keep them, and gives it
/// the name. Needs space for both files. A link at `path` is replaced, not followed. Fails with one sentence
/// where the folder does not exist or may not be written to, or `path` is not a file's; throws
/// EnvironmentError where the disk is full or fails. After either, the old file is untouched.
Result<void> replace_file(const std::filesystem::path& path,
                          std::span<const std::span<const std::byte>> pieces);

/// Pieces made one after the other, so that they need not all be in memory: `next` is called until it returns
/// an empty one; each is used until the next call. What it throws leaves the old file untouched.
/// pre: together they are `total` long
struct Pieces {
  Bytes total;
  std::function<std::span<const std::byte>()> next;
};
Result<void> replace_file(const std::filesystem::path& path, const Pieces& pieces);

/// Whether `replace_file` could start at this path now; fails and throws as it does. Leaves nothing behind.
Result<void> check_replaceable(const std::filesystem::path& path);

}  // namespace terrace

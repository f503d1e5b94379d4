// Direct I/O bypasses the page cache; this finds the alignment that a file's disk requires for it.
#pragma once

#include <optional>
#include <string>

#include "terrace/bytes.hpp"

namespace terrace {

/// Both are powers of two, and memory <= block.
struct Alignment {
  Bytes block;   ///< alignment of offsets and lengths
  Bytes memory;  ///< alignment of addresses
  bool operator==(const Alignment&) const = default;
};

/// Returns the alignment that is enough for requests through the page cache.
Alignment buffered_alignment();

/// Switches the open file to direct I/O and returns the finest alignment with which a read and a write of its
/// first block succeed there, or nothing (and leaves the page cache on) where the file system refuses. The
/// file's contents do not change. Throws EnvironmentError, naming `tier` and `path`, where the disk fails.
/// pre: the file is open for reading and writing and at least 4 KiB long
std::optional<Alignment> enable_direct_io(int descriptor, const std::string& tier, const std::string& path);

}  // namespace terrace

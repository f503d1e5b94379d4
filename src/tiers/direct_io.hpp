// Direct I/O: what a file's disk asks of requests that go past the page cache.
#pragma once

#include <optional>
#include <string>

#include "terrace/bytes.hpp"

namespace terrace {

/// Powers of two; memory <= block.
struct Alignment {
  Bytes block;   ///< of offsets and lengths
  Bytes memory;  ///< of addresses
  bool operator==(const Alignment&) const = default;
};

/// What the page cache is happy with.
Alignment buffered_alignment();

/// Switches the open file to direct I/O and returns the finest alignment with which a read and a write of its
/// first block succeed there, or nothing (and leaves the page cache on) where the file system refuses. The
/// contents stay what they are. Throws EnvironmentError, naming `tier` and `path`, where the disk fails.
/// pre: the file is open for reading and writing and at least 4 KiB long
std::optional<Alignment> enable_direct_io(int descriptor, const std::string& tier, const std::string& path);

}  // namespace terrace

// These probes find out what a disk offers at one folder: direct I/O, synchronous mapping, speed.
//
// Every probe works on a scratch file in that folder that has no name once it is open, so nothing is left
// behind however the process ends. The results are plain data; all functions are thread-safe.
#pragma once

#include <filesystem>
#include <functional>

#include "terrace/bytes.hpp"
#include "terrace/result.hpp"

namespace terrace {

struct StorageFeatures {
  Bytes free_space;
  bool in_memory = false;  ///< the file system is memory (tmpfs), not a disk
  int direct_error = 0;    ///< errno of writing and reading with direct I/O; 0 = it works
  bool map_sync = false;   ///< stores to a mapping are durable without a system call
};

struct DiskSpeed {
  Bytes amount;  ///< bytes that one pass covered
  BytesPerSecond write, read;
};

/// Progress is called on the calling thread with the share of the work that is done, 0 to 1.
using Progress = std::function<void(double)>;

/// Probes one folder; fails with one sentence where `folder` is missing, not a folder or not writable.
Result<StorageFeatures> probe_storage(const std::filesystem::path& folder);

/// Writes `amount` in large aligned blocks with direct I/O, twice because the first write into fresh space is
/// slower than any later one, and reads it back. It covers less where the disk needs longer than `patience`
/// for a pass. Fails with one sentence where direct I/O is refused, space is short or the disk reports an
/// error.
Result<DiskSpeed> measure_disk(const std::filesystem::path& folder, Bytes amount, Seconds patience,
                               const Progress& progress);

}  // namespace terrace

// What a disk offers at one folder: direct I/O, synchronous mapping, speed.
//
// Every probe works on a scratch file in that folder which has no name as soon as it is open, so nothing is
// left behind however the process ends. Plain data out; thread-safe.
#pragma once

#include <filesystem>
#include <functional>

#include "terrace/bytes.hpp"
#include "terrace/result.hpp"

namespace terrace {

struct StorageFeatures {
  Bytes free_space;
  bool in_memory = false;  ///< the file system is memory (tmpfs), not a disk
  int direct_error = 0;    ///< errno of writing and reading around the page cache; 0 = it works
  bool map_sync = false;   ///< stores to a mapping are durable without a system call
};

struct DiskSpeed {
  Bytes amount;  ///< bytes that one pass covered
  BytesPerSecond write, read;
};

/// Told the share of the work that is done, 0 to 1, from the calling thread.
using Progress = std::function<void(double)>;

/// Fails with one sentence where `folder` is missing, not a folder or not writable.
Result<StorageFeatures> probe_storage(const std::filesystem::path& folder);

/// Writes `amount` in large aligned blocks around the page cache, twice because the first write into fresh
/// space is slower than any later one, and reads it back. Covers less where the disk needs longer than
/// `patience` for a pass. Fails with one sentence where direct I/O is refused, space is short or the disk
/// reports an error.
Result<DiskSpeed> measure_disk(const std::filesystem::path& folder, Bytes amount, Seconds patience,
                               const Progress& progress);

}  // namespace terrace

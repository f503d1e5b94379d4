// File tier: a disk behind a block queue. Direct I/O through io_uring where the computer offers both; a pool
// of threads, or (only if the spec accepts it) the page cache otherwise, told in the description's note.
#pragma once

#include <memory>

#include "terrace/tier.hpp"

namespace terrace {

/// Fails with the errors of open_backing_file (backing_file.hpp), with invalid_argument for a `block` the
/// disk does not take, and with unsupported where direct I/O is refused and `buffered` was not
/// given; a file that it created is gone then. Throws EnvironmentError where the disk or the system fails.
/// pre: spec.kind == file
Result<std::unique_ptr<Tier>> open_file_tier(const TierSpec& spec);

}  // namespace terrace

// A file tier is a disk behind a block queue. It uses direct I/O through io_uring where the computer offers
// both; otherwise a pool of threads, or the page cache if the spec accepts it. The description's note says
// which.
#pragma once

#include <memory>

#include "terrace/tier.hpp"

namespace terrace {

/// Fails with the errors of open_backing_file (backing_file.hpp), with invalid_argument for a `block` the
/// disk does not take, and with unsupported where direct I/O is refused and `buffered` was not given; a file
/// that it created is removed then. Throws EnvironmentError where the disk or the system fails. pre:
/// spec.kind == file
Result<std::unique_ptr<Tier>> open_file_tier(const TierSpec& spec);

}  // namespace terrace

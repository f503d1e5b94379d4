// SPDX-License-Identifier: Apache-2.0
#include "mover/block_error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <string_view>
#include <system_error>

namespace terrace {
namespace {

std::string_view advice(int cause) {
  switch (cause) {
    case ENOSPC:
    case EDQUOT:
      return "free space on that disk, or give the tier another path or a smaller size";
    case EIO:
      return "the device is failing: see the kernel's log, and give the tier another disk";
    case EFBIG:
      return "give the tier a smaller size";
    case EINVAL:
      return "the file system may not take direct I/O of this shape: try the option `buffered`";
    case 0:
      return "the file may have been cut short by another program: open the tier again";
    default:
      return "check the disk, or give the tier another path";
  }
}

}  // namespace

EnvironmentError block_error(const Tier& tier, Access access, std::uint64_t offset, int cause) {
  const TierDescription& description = tier.description();
  const std::string& path = description.spec.path;
  const std::string reason = cause == 0 ? "no bytes were moved" : std::generic_category().message(cause);
  return {fmt::format("cannot {} tier {} at offset {}{}: {}; {}", access == Access::read ? "read" : "write",
                      description.name, offset, path.empty() ? "" : fmt::format(" of file {}", path), reason,
                      advice(cause)),
          {description.name, path, offset, cause}};
}

}  // namespace terrace

// Reads the Linux kernel's small text formats leniently: a missing file is empty, and malformed parts are
// ignored.
#pragma once

#include <filesystem>
#include <string>

namespace terrace {

/// Returns the first line of a file, or nothing where it cannot be read.
std::string first_line(const std::filesystem::path& file);
/// Counts the members of a list such as `0-3,8`.
unsigned count_kernel_list(const std::string& list);

}  // namespace terrace

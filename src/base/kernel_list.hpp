// The kernel's small text formats, read without fuss: a missing file is empty, nonsense counts as nothing.
#pragma once

#include <filesystem>
#include <string>

namespace terrace {

/// The first line of a file; empty where it cannot be read.
std::string first_line(const std::filesystem::path& file);
/// How many members a list such as `0-3,8` has.
unsigned count_kernel_list(const std::string& list);

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// Writing the files of an index, wherever its parts come from.
#pragma once

#include <filesystem>
#include <functional>

#include "ann/element.hpp"
#include "ann/fast_part.hpp"

namespace terrace::ann {

/// Writes both parts, then the manifest. The codes in the fast part must be there when it is called; `record`
/// is called once for each node in ascending order and writes what stands at its place in a layout of those
/// elements (layout.hpp). Fails with a sentence where the folder cannot be written to; throws
/// EnvironmentError where the disk fails.
Result<void> write_index(const std::filesystem::path& folder, const FastPart& fast, ElementType element,
                         const std::function<void(std::uint32_t node, std::byte* out)>& record);

}  // namespace terrace::ann

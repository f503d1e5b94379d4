// IDX is the format of the MNIST family of datasets: a header (element type, number of dimensions,
// dimensions) and then the elements, all of it compressed by gzip. Only unsigned bytes are supported, which
// is what these datasets hold.
//
// Nothing that a file declares is trusted: memory grows only with the bytes that it really contains. The
// functions are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "terrace/result.hpp"

namespace terrace {

struct Idx {
  std::vector<std::uint32_t> dims;  ///< slowest first; their product is bytes.size()
  std::vector<std::uint8_t> bytes;
};

/// Reads a gzip'ed IDX file. Fails with one sentence that names the path where there is no such file or it is
/// damaged; throws EnvironmentError where the disk fails.
Result<Idx> read_idx(const std::filesystem::path& path);

/// Does the same for a file held in memory; messages call it `name`.
Result<Idx> parse_idx(std::span<const std::byte> file, std::string_view name);

}  // namespace terrace

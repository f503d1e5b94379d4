// IDX: the format of the MNIST family of datasets. A header (element type, number of dimensions, dimensions)
// and then the elements, all of it compressed by gzip. Only unsigned bytes are read here, which is what these
// datasets hold.
//
// Nothing a file declares is trusted: memory grows with the bytes that really come out of it. Plain
// functions, thread-safe.
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

/// The same for a file held in memory; `name` stands for it in messages.
Result<Idx> parse_idx(std::span<const std::byte> file, std::string_view name);

}  // namespace terrace

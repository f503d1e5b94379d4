// The JSON header of a safetensors file, as it stands there: every key and type is the format's, no name
// comes twice, but the numbers are not yet compared with anything.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/safetensors.hpp"
#include "terrace/result.hpp"

namespace terrace::safetensors {

inline constexpr std::string_view kMetadataKey = "__metadata__";

struct Entry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;  ///< from the first byte after the header
  std::uint64_t end = 0;    ///< one past the last
};

struct Header {
  std::vector<Entry> entries;
  Metadata metadata;
};

/// Fails with what is wrong, to be read after the file's name: `has a header that ...`. Memory grows with the
/// text alone.
Result<Header> parse_header(std::string_view text);

/// Padded with spaces so that what follows it in a file is aligned for every dtype.
/// pre: names and metadata are UTF-8
std::string print_header(const Header& header);

}  // namespace terrace::safetensors

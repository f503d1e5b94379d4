// The JSON header of a safetensors file, checked for syntax only: all keys and types are the format's and no
// name is duplicate, but the numbers are not yet checked against the file.
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
  std::uint64_t begin = 0;  ///< counted from the first byte after the header
  std::uint64_t end = 0;    ///< one past the last
};

struct Header {
  std::vector<Entry> entries;
  Metadata metadata;
};

/// Parses a header. The error is the rest of a sentence that begins with the file's name: `has a header that
/// ...`. Memory is proportional to the text.
Result<Header> parse_header(std::string_view text);

/// Prints a header, padded with spaces so that the bytes behind it are aligned for every dtype. pre: names
/// and metadata are UTF-8
std::string print_header(const Header& header);

}  // namespace terrace::safetensors

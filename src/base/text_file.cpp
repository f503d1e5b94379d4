// SPDX-License-Identifier: Apache-2.0
#include "base/text_file.hpp"

#include <span>

#include "base/input_file.hpp"
#include "base/replace_file.hpp"

namespace terrace {

Result<std::string> read_text(const std::filesystem::path& path) {
  const auto file = InputFile::open(path);
  if (!file) return file.error();
  const std::vector<std::byte> bytes = file->contents();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  const std::span<const std::byte> whole = std::as_bytes(std::span(text));
  replace_file(path, {&whole, 1}).value();
}

}  // namespace terrace

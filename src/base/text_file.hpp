// SPDX-License-Identifier: Apache-2.0
// Whole text files: how every format of ours is read from a path and written to one. Thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <type_traits>

#include "terrace/result.hpp"

namespace terrace {

/// Fails with one sentence where there is no such file, it may not be read, or it is not a regular one.
/// Throws EnvironmentError where the disk fails.
Result<std::string> read_text(const std::filesystem::path& path);

/// Replaces the file atomically. Throws ResultError where the path cannot be written to (see
/// base/replace_file.hpp) and EnvironmentError where the disk is full or fails; the previous file is
/// untouched then.
void write_text(const std::filesystem::path& path, std::string_view text);

/// Returns parse(text) of a file's text; where that fails, its sentence is preceded by the path.
template <class Parse>
std::invoke_result_t<Parse, std::string_view> parse_file(const std::filesystem::path& path, Parse parse) {
  const Result<std::string> text = read_text(path);
  if (!text) return text.error();
  auto parsed = parse(std::string_view(*text));
  if (!parsed) return Error{parsed.error().code, path.native() + ": " + parsed.error().message};
  return parsed;
}

}  // namespace terrace

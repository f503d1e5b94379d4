// SPDX-License-Identifier: Apache-2.0
// Whole files, read and written by tests.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace terrace::ann {

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void put(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace terrace::ann

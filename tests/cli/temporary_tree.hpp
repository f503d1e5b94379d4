// SPDX-License-Identifier: Apache-2.0
// A folder of its own for one test, gone with it; write() makes files in it, so that it can stand in for the
// /proc, /sys and /dev of another computer.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace terrace::test {

class TemporaryTree {
 public:
  TemporaryTree() {
    std::string name = std::filesystem::temp_directory_path() / "terrace-test-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  TemporaryTree(const TemporaryTree&) = delete;
  TemporaryTree& operator=(const TemporaryTree&) = delete;
  ~TemporaryTree() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const { return path_; }

  void write(const std::string& name, const std::string& contents) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << contents;
  }
  std::string read(const std::string& name) const {
    std::ifstream in(path_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::filesystem::path path_;
};

}  // namespace terrace::test

// SPDX-License-Identifier: Apache-2.0
// Where a command's `--json FILE` goes. Opened before the work starts, so that a wrong name is met at once.
#pragma once

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/command.hpp"

namespace terrace::cli {

class JsonFile {
 public:
  /// Throws BadInput where the file cannot be written.
  explicit JsonFile(std::string name) : name_(std::move(name)), out_(name_) {
    if (!out_) fail();
  }

  void write(const nlohmann::json& value) {
    out_ << value.dump(2) << std::endl;
    if (!out_) fail();
  }

 private:
  [[noreturn]] void fail() const {
    throw BadInput("cannot write " + name_ + " (" + std::strerror(errno) + "): name a writable file");
  }

  std::string name_;
  std::ofstream out_;
};

}  // namespace terrace::cli

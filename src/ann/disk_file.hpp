// SPDX-License-Identifier: Apache-2.0
// A file that is read past the page cache, by any number of queues: each thread has one of its own.
#pragma once

#include <filesystem>
#include <memory>

#include "terrace/tier.hpp"

namespace terrace::ann {

class DiskFile {
 public:
  /// Throws EnvironmentError where it cannot be opened. Goes through the page cache where the file system
  /// refuses direct I/O. `unit`: what every request asks for.
  DiskFile(const std::filesystem::path& path, Bytes unit);
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;
  ~DiskFile();

  const std::string& path() const { return path_; }
  bool direct() const { return direct_; }
  /// By io_uring, or threads where there is none. The file outlives it.
  std::unique_ptr<BlockQueue> open_queue() const;

 private:
  std::string path_;
  Bytes unit_, size_;
  int descriptor_ = -1;
  bool direct_ = true;
};

}  // namespace terrace::ann

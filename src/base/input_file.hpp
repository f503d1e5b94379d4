// An InputFile is a regular file opened for reading and closed when it goes out of scope. It is move-only,
// and several threads may read it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <utility>
#include <vector>

#include "terrace/bytes.hpp"
#include "terrace/result.hpp"

namespace terrace {

class InputFile {
 public:
  /// Fails with one sentence where there is no such file, it may not be read, or it is not a regular one.
  static Result<InputFile> open(const std::filesystem::path& path);

  InputFile(InputFile&& other) noexcept
      : path_(std::move(other.path_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        size_(other.size_) {}
  InputFile& operator=(InputFile&& other) = delete;
  ~InputFile();

  const std::filesystem::path& path() const noexcept { return path_; }
  int descriptor() const noexcept { return descriptor_; }
  /// Returns the size that the file had when it was opened.
  Bytes size() const noexcept { return size_; }
  /// Reads the whole file. Throws EnvironmentError where the disk fails or the file was shortened meanwhile.
  std::vector<std::byte> contents() const;

 private:
  InputFile(std::filesystem::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::filesystem::path path_;
  int descriptor_;
  Bytes size_;
};

}  // namespace terrace

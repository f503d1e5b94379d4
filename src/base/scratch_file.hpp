// A ScratchFile is a file without a name that disappears when it is closed. It is move-only and serves probes
// and measurements.
#pragma once

#include <filesystem>
#include <utility>

#include "terrace/result.hpp"

namespace terrace {

class ScratchFile {
 public:
  /// Creates the file; fails with one sentence that names the folder and the cause.
  static Result<ScratchFile> create(const std::filesystem::path& folder);

  ScratchFile(ScratchFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ScratchFile& operator=(ScratchFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~ScratchFile();

  int descriptor() const noexcept { return descriptor_; }
  /// Bypasses the page cache from now on. Returns 0 or the errno of the refusal.
  int go_direct();

 private:
  explicit ScratchFile(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace terrace

// A BackingFile is the disk space behind a file or dax tier, reserved in full when it is opened.
//
// Unless it is to be kept, the file has no name where the file system supports that, and is unlinked at once
// elsewhere, so that the space is freed however the process ends.
#pragma once

#include <string>
#include <utility>

#include "terrace/bytes.hpp"
#include "terrace/result.hpp"

namespace terrace {

/// Owns an open file. A kept file is locked, so that no two tiers share it.
class BackingFile {
 public:
  explicit BackingFile(int fd) : fd_(fd) {}
  BackingFile(BackingFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  BackingFile& operator=(BackingFile&& other) noexcept {
    BackingFile old(std::exchange(fd_, std::exchange(other.fd_, -1)));
    return *this;
  }
  ~BackingFile();

  int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

/// Creates `path` for reading and writing with `capacity` bytes reserved on the disk. With `keep` the file
/// stays, and a regular file of this user may be reopened, its contents untouched.
/// Fails with invalid_argument (a folder, a link, no parent, not writable, exists already, in use), too_large
/// (naming the missing bytes) or unsupported (the file system refuses `extra_open_flags` or cannot reserve
/// space), and then leaves nothing behind. Throws EnvironmentError on I/O errors. `spec_text` names the tier
/// in messages.
Result<BackingFile> open_backing_file(const std::string& path, Bytes capacity, bool keep,
                                      int extra_open_flags, const std::string& spec_text);

}  // namespace terrace

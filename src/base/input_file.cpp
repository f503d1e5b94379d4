// SPDX-License-Identifier: Apache-2.0
#include "base/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "terrace/error.hpp"

namespace terrace {
namespace {

Error refuse(const std::filesystem::path& path, const std::string& reason) {
  return {ErrorCode::invalid_argument, fmt::format("cannot read {}: {}", path.native(), reason)};
}

[[noreturn]] void give_up(const std::filesystem::path& path, std::uint64_t offset, int cause) {
  const char* reason = cause != 0 ? std::strerror(cause) : "it was shortened meanwhile";
  throw EnvironmentError(
      fmt::format("reading {} failed at byte {} ({}): check the disk", path.native(), offset, reason),
      {"", path.native(), offset, cause});
}

}  // namespace

Result<InputFile> InputFile::open(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
  InputFile file(path, ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.descriptor_ < 0) return refuse(path, fmt::format("{}; name another file", std::strerror(errno)));
  struct stat status;
  if (fstat(file.descriptor_, &status) != 0) give_up(path, 0, errno);
  if (!S_ISREG(status.st_mode)) return refuse(path, "it is not a regular file; name another");
  file.size_ = Bytes{static_cast<std::uint64_t>(status.st_size)};
  return file;
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::vector<std::byte> InputFile::contents() const {
  std::vector<std::byte> bytes(size_.count);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got =
        pread(descriptor_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) give_up(path_, done, got < 0 ? errno : 0);
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace terrace

#include "base/scratch_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

namespace terrace {
namespace {

// On file systems without O_TMPFILE the file has a name for an instant.
int create_and_unlink(const std::filesystem::path& folder) {
  std::string name = folder / ".terrace-scratch-XXXXXX";
  const int descriptor = mkostemp(name.data(), O_CLOEXEC);
  if (descriptor >= 0) unlink(name.c_str());
  return descriptor;
}

}  // namespace

Result<ScratchFile> ScratchFile::create(const std::filesystem::path& folder) {
  std::error_code failed;
  if (!std::filesystem::exists(folder, failed)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} does not exist: name an existing folder", folder.native())};
  }
  if (!std::filesystem::is_directory(folder, failed)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} is not a folder: name a folder on the disk in question", folder.native())};
  }
  int descriptor = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
  if (descriptor < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) {
    descriptor = create_and_unlink(folder);
  }
  if (descriptor < 0) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("cannot create a file in {} ({}): name a writable folder", folder.native(),
                             std::strerror(errno))};
  }
  return ScratchFile(descriptor);
}

ScratchFile::~ScratchFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

int ScratchFile::go_direct() {
  // The flag is set after opening, because an open() that refuses it may still have created the file.
  const int flags = fcntl(descriptor_, F_GETFL);
  return fcntl(descriptor_, F_SETFL, flags | O_DIRECT) == 0 ? 0 : errno;
}

}  // namespace terrace

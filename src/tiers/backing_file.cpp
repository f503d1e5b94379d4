#include "tiers/backing_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "terrace/error.hpp"

namespace terrace {
namespace {

std::string folder_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? std::string(".") : parent.string();
}

class Opener {
 public:
  Opener(const std::string& path, Bytes capacity, bool keep, int extra_flags, const std::string& tier)
      : path_(path),
        parent_(folder_of(path)),
        capacity_(capacity),
        keep_(keep),
        flags_(O_RDWR | O_CLOEXEC | extra_flags),
        tier_(tier) {}

  Result<BackingFile> open() {
    if (const auto fine = inspect(); !fine) return fine.error();
    if (const auto fine = require_space(); !fine) return fine.error();
    auto file = existing_ ? reopen() : keep_ ? create() : create_nameless();
    if (!file) return file;
    auto reserved = reserve(*file);
    if (!reserved && keep_ && !existing_) unlink(path_.c_str());
    return reserved ? std::move(file) : Result<BackingFile>(reserved.error());
  }

 private:
  // ---- Messages

  Error refuse(ErrorCode code, const std::string& reason) const {
    return {code, fmt::format("cannot open {}: {}", tier_, reason)};
  }
  Error refuse(const std::string& reason) const { return refuse(ErrorCode::invalid_argument, reason); }

  [[noreturn]] void give_up(const char* doing, int cause) const {
    throw EnvironmentError(fmt::format("{} for {} failed at {} ({}): check the disk and the system's limits",
                                       doing, tier_, path_, std::strerror(cause)),
                           {tier_, path_, 0, cause});
  }

  // Tells a wrong request, which is returned, from a failing environment, which throws.
  Error refused_open(int cause) const {
    switch (cause) {
      case EINVAL:
        return refuse(
            ErrorCode::unsupported,
            fmt::format("the file system of {} refuses this way of access; try another disk", parent_));
      case EEXIST:
      case EACCES:
      case EPERM:
      case EROFS:
      case ELOOP:
      case ENOENT:
      case ENOTDIR:
      case ENAMETOOLONG:
      case ETXTBSY:
        return refuse(
            fmt::format("{} cannot be created there ({}); name another path", path_, std::strerror(cause)));
      case ENOSPC:
      case EDQUOT:
        return refuse(ErrorCode::too_large,
                      fmt::format("{} ({}); name another disk", path_, std::strerror(cause)));
      default:
        give_up("opening the file", cause);
    }
  }

  Error no_space(Bytes missing) const {
    return refuse(
        ErrorCode::too_large,
        fmt::format("the file system of {} is {} short of the {} asked for; free that much, ask for less "
                    "or name another disk",
                    parent_, readable(missing), readable(capacity_)));
  }

  // ---- The path

  Result<void> inspect() {
    if (path_.ends_with('/')) return refuse(fmt::format("{} names a folder; name a file in it", path_));
    struct stat status;
    if (lstat(path_.c_str(), &status) == 0) return inspect_existing(status);
    if (errno != ENOENT) return refused_open(errno);
    if (stat(parent_.c_str(), &status) != 0)
      return refuse(fmt::format("the folder {} does not exist; create it", parent_));
    if (!S_ISDIR(status.st_mode))
      return refuse(fmt::format("{} is not a folder; name another path", parent_));
    if (access(parent_.c_str(), W_OK | X_OK) == 0) return {};
    return refuse(fmt::format("the folder {} is not writable ({}); name another or change its permissions",
                              parent_, std::strerror(errno)));
  }

  Result<void> inspect_existing(const struct stat& status) {
    if (S_ISDIR(status.st_mode)) return refuse(fmt::format("{} is a folder; name a file in it", path_));
    if (S_ISLNK(status.st_mode)) return refuse(fmt::format("{} is a link; name the file itself", path_));
    if (!S_ISREG(status.st_mode))
      return refuse(fmt::format("{} is not a regular file; name another path", path_));
    if (!keep_)
      return refuse(
          fmt::format("{} exists already; name another path, or add `keep` to use that file", path_));
    if (status.st_uid != geteuid())
      return refuse(fmt::format("{} belongs to another user; name another path", path_));
    existing_ = status;
    return {};
  }

  std::optional<Bytes> free_space() const {
    struct statvfs status;
    if (statvfs(parent_.c_str(), &status) != 0) return std::nullopt;
    return Bytes{status.f_bavail * status.f_frsize};
  }

  // Free space is checked first, because reserving far too much fills the disk for a moment, and because a
  // file beyond RLIMIT_FSIZE ends the process by a signal.
  Result<void> require_space() const {
    rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && capacity_.count > limit.rlim_cur) {
      return refuse(
          ErrorCode::too_large,
          fmt::format("this process may write files of {} at most; raise `ulimit -f` or ask for less",
                      readable(Bytes{limit.rlim_cur})));
    }
    const Bytes held{existing_ ? static_cast<std::uint64_t>(existing_->st_blocks) * 512 : 0};
    const Bytes needed = capacity_ - std::min(held, capacity_);
    const auto free = free_space();
    return !free || needed <= *free ? Result<void>() : no_space(needed - *free);
  }

  // ---- The file

  Result<BackingFile> reopen() const {
    BackingFile file(::open(path_.c_str(), flags_ | O_NOFOLLOW));
    if (file.fd() < 0) return refused_open(errno);
    struct stat status;
    if (fstat(file.fd(), &status) != 0) give_up("looking at the file", errno);
    if (status.st_ino != existing_->st_ino || status.st_dev != existing_->st_dev) {
      return refuse(fmt::format("{} was replaced while it was opened; try again", path_));
    }
    return lock(std::move(file));
  }

  Result<BackingFile> create() const {
    BackingFile file(::open(path_.c_str(), flags_ | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
    if (file.fd() >= 0) return keep_ ? lock(std::move(file)) : std::move(file);
    const int cause = errno;
    // The system creates the file before it refuses the flags, so the file is removed here.
    if (cause == EINVAL) unlink(path_.c_str());
    return refused_open(cause);
  }

  Result<BackingFile> create_nameless() const {
    BackingFile file(::open(parent_.c_str(), flags_ | O_TMPFILE | O_EXCL, 0600));
    if (file.fd() >= 0) return file;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) return refused_open(errno);
    auto named = create();
    if (named) unlink(path_.c_str());
    return named;
  }

  Result<BackingFile> lock(BackingFile file) const {
    if (flock(file.fd(), LOCK_EX | LOCK_NB) == 0) return file;
    if (errno != EWOULDBLOCK) give_up("locking the file", errno);
    return refuse(fmt::format("{} is in use by another tier; name another path", path_));
  }

  Result<void> reserve(const BackingFile& file) const {
    int cause = 0;
    do {
      cause = fallocate(file.fd(), 0, 0, static_cast<off_t>(capacity_.count)) == 0 ? 0 : errno;
    } while (cause == EINTR);
    if (cause == 0) return {};
    const Bytes free = free_space().value_or(Bytes{0});
    // A reservation that failed half-way must not leave a kept file longer than it was.
    if (existing_ && ftruncate(file.fd(), existing_->st_size) != 0) give_up("shrinking the file back", errno);
    switch (cause) {
      case ENOSPC:
      case EDQUOT:
        return no_space(capacity_ - std::min(free, capacity_));
      case EFBIG:
        return refuse(ErrorCode::too_large,
                      fmt::format("the file system of {} has no files of {}; ask for less", parent_,
                                  readable(capacity_)));
      case EOPNOTSUPP:
        return refuse(ErrorCode::unsupported,
                      fmt::format("the file system of {} cannot reserve space; name another disk", parent_));
      default:
        give_up("reserving space", cause);
    }
  }

  const std::string& path_;
  const std::string parent_;
  const Bytes capacity_;
  const bool keep_;
  const int flags_;
  const std::string& tier_;
  std::optional<struct stat> existing_;
};

}  // namespace

BackingFile::~BackingFile() {
  if (fd_ >= 0) close(fd_);
}

Result<BackingFile> open_backing_file(const std::string& path, Bytes capacity, bool keep,
                                      int extra_open_flags, const std::string& spec_text) {
  return Opener(path, capacity, keep, extra_open_flags, spec_text).open();
}

}  // namespace terrace

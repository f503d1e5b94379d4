// SPDX-License-Identifier: Apache-2.0
#include "base/replace_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>

#include "base/check.hpp"
#include "terrace/bytes.hpp"
#include "terrace/error.hpp"

namespace terrace {
namespace {

constexpr std::string_view kTemporary = ".terrace-new-";

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const noexcept { return number_; }

 private:
  int number_;
};

class Replacement {
 public:
  Replacement(const std::filesystem::path& path, Bytes size)
      : path_(path), folder_(path.has_parent_path() ? path.parent_path() : "."), size_(size) {}

  ~Replacement() {
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  Result<void> try_out() {
    if (const auto fine = inspect(); !fine) return fine;
    const Descriptor file(create());
    if (file.number() < 0) return refused_create(errno);
    return {};
  }

  Result<void> run(const Pieces& pieces) {
    if (const auto fine = inspect(); !fine) return fine;
    const Descriptor file(create());
    if (file.number() < 0) return refused_create(errno);
    reserve(file.number());
    for (auto piece = pieces.next(); !piece.empty(); piece = pieces.next()) write(file.number(), piece);
    check(written_ == size_.count, "the pieces of a file are as large as they were said to be");
    if (fsync(file.number()) != 0) give_up(errno);
    if (rename(temporary_.c_str(), path_.c_str()) != 0) give_up(errno);
    temporary_.clear();
    keep_name();
    return {};
  }

 private:
  // ---- Messages

  Error refuse(ErrorCode code, const std::string& reason) const {
    return {code, fmt::format("cannot write {}: {}", path_.native(), reason)};
  }
  Error refuse(const std::string& reason) const { return refuse(ErrorCode::invalid_argument, reason); }

  Error refused_create(int cause) const {
    switch (cause) {
      case ENOENT:
      case ENOTDIR:
        return refuse(fmt::format("the folder {} does not exist; create it", folder_.native()));
      case EACCES:
      case EPERM:
      case EROFS:
        return refuse(fmt::format("the folder {} is not writable ({}); name another", folder_.native(),
                                  std::strerror(cause)));
      case ELOOP:
      case ENAMETOOLONG:
        return refuse(fmt::format("{}; name another path", std::strerror(cause)));
      default:
        give_up(cause);
    }
  }

  bool is_full(int cause) const { return cause == ENOSPC || cause == EDQUOT; }

  [[noreturn]] void give_up(int cause) const {
    if (is_full(cause)) no_space(cause);
    throw EnvironmentError(
        fmt::format(
            "writing {} failed at byte {} ({}): check the disk; a file that was there before is untouched",
            path_.native(), written_, std::strerror(cause)),
        {"", path_.native(), written_, cause});
  }

  [[noreturn]] void no_space(int cause) const {
    struct statvfs status {};
    const bool known = statvfs(folder_.c_str(), &status) == 0;
    const std::uint64_t free = known ? status.f_bavail * status.f_frsize : 0;
    // A quota may be the limit while the disk has space, so at least the unwritten bytes are reported as
    // missing.
    const std::uint64_t left = size_.count - written_;
    const Bytes missing{left > free ? left - free : left};
    throw EnvironmentError(
        fmt::format("writing {} needs {} and the file system of {} is {} short ({}): free that much or name "
                    "another disk; a file that was there before is untouched",
                    path_.native(), readable(size_), folder_.native(), readable(missing),
                    std::strerror(cause)),
        {"", path_.native(), written_, cause});
  }

  // ---- The steps

  Result<void> inspect() const {
    struct stat status;
    const int missing = lstat(path_.c_str(), &status) == 0 ? 0 : errno;
    if (missing != 0 && missing != ENOENT) return refused_create(missing);
    if (missing == 0 && !S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode))
      return refuse("what is there is not a regular file; name another path");
    if (!path_.has_filename()) return refuse("it names no file; add a name");
    rlimit limit;
    // A file beyond RLIMIT_FSIZE would end the process by a signal.
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && size_.count > limit.rlim_cur)
      return refuse(
          ErrorCode::too_large,
          fmt::format("this process may write files of {} at most and {} are needed; raise `ulimit -f`",
                      readable(Bytes{limit.rlim_cur}), readable(size_)));
    return {};
  }

  // The temporary file is in the same folder, because a rename is atomic only within one file system. It is
  // locked while somebody writes it.
  int create() {
    static std::atomic<unsigned> count{0};
    remove_abandoned();
    for (;;) {
      const auto name = fmt::format("{}{}-{}", kTemporary, getpid(), count++);
      const int descriptor = open((folder_ / name).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (descriptor < 0 && errno == EEXIST) continue;
      if (descriptor < 0) return descriptor;
      temporary_ = folder_ / name;
      flock(descriptor, LOCK_EX | LOCK_NB);
      return descriptor;
    }
  }

  // What a killed process was writing may be large. Nobody has locked it, and nobody has written to it for a
  // while: a new file is not locked from its first moment on.
  void remove_abandoned() const {
    constexpr auto kWhile = std::chrono::minutes(1);
    std::error_code failed;
    const auto now = std::filesystem::file_time_type::clock::now();
    for (std::filesystem::directory_iterator entry(folder_, failed), end; !failed && entry != end;
         entry.increment(failed)) {
      const std::filesystem::path& path = entry->path();
      if (!path.filename().native().starts_with(kTemporary)) continue;
      std::error_code gone;
      const auto written = entry->last_write_time(gone);
      if (gone || now - written < kWhile) continue;
      const Descriptor file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
      if (file.number() >= 0 && flock(file.number(), LOCK_EX | LOCK_NB) == 0) unlink(path.c_str());
    }
  }

  // Reserving the space detects a full disk before the first byte is written, where the file system supports
  // that.
  void reserve(int file) const {
    if (size_.count == 0) return;
    int cause = 0;
    do {
      cause = fallocate(file, 0, 0, static_cast<off_t>(size_.count)) == 0 ? 0 : errno;
    } while (cause == EINTR);
    if (cause != 0 && cause != EOPNOTSUPP && cause != ENOSYS) give_up(cause);
  }

  void write(int file, std::span<const std::byte> piece) {
    while (!piece.empty()) {
      const ssize_t wrote = ::write(file, piece.data(), piece.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) give_up(wrote < 0 ? errno : EIO);
      piece = piece.subspan(static_cast<std::size_t>(wrote));
      written_ += static_cast<std::uint64_t>(wrote);
    }
  }

  // The file is complete already; this makes its name survive a crash. Some file systems do not support it.
  void keep_name() const {
    const Descriptor folder(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.number() >= 0 && fsync(folder.number()) != 0 && errno != EINVAL) {
      throw EnvironmentError(fmt::format("{} was written, but the disk may forget its name in a crash ({}): "
                                         "check the disk",
                                         path_.native(), std::strerror(errno)),
                             {"", path_.native(), written_, errno});
    }
  }

  const std::filesystem::path& path_;
  const std::filesystem::path folder_;
  const Bytes size_;
  std::filesystem::path temporary_;  // empty once the file was renamed
  std::uint64_t written_ = 0;
};

}  // namespace

Result<void> replace_file(const std::filesystem::path& path,
                          std::span<const std::span<const std::byte>> pieces) {
  Bytes size{0};
  for (const auto piece : pieces) size += Bytes{piece.size()};
  auto piece = pieces.begin();
  return replace_file(path, Pieces{size, [&]() -> std::span<const std::byte> {
                                     while (piece != pieces.end() && piece->empty()) ++piece;
                                     return piece != pieces.end() ? *piece++ : std::span<const std::byte>{};
                                   }});
}

Result<void> replace_file(const std::filesystem::path& path, const Pieces& pieces) {
  return Replacement(path, pieces.total).run(pieces);
}

Result<void> check_replaceable(const std::filesystem::path& path) {
  return Replacement(path, Bytes{0}).try_out();
}

}  // namespace terrace

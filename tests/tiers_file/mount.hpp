// SPDX-License-Identifier: Apache-2.0
// A small file system of the test's own. Needs root and the mount and mkfs programs; without them valid() is
// false.
#pragma once

#include <sys/statvfs.h>

#include <cstdlib>
#include <string>

#include "tiers/temporary_folder.hpp"

namespace terrace::file_test {

class Mount {
 public:
  enum class Kind {
    memory,     ///< 1 MiB, no disk behind it
    disk,       ///< 32 MiB
    journaled,  ///< 32 MiB whose data goes through a journal: direct I/O is refused
  };

  explicit Mount(Kind kind) {
    std::filesystem::create_directory(path());
    valid_ = run(kind == Kind::memory ? "mount -t tmpfs -o size=1M none " + path()
                                      : mount_image(kind == Kind::disk ? "data=ordered" : "data=journal"));
  }
  ~Mount() {
    if (valid_) run("umount " + path() + " || umount -l " + path());
  }
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;

  bool valid() const { return valid_; }
  static const char* why() { return "no file system of our own: mounting needs root and mkfs.ext4"; }

  std::string path() const { return folder_ / "mounted"; }
  std::string operator/(const std::string& name) const { return path() + "/" + name; }
  bool empty() const {
    for (const auto& entry : std::filesystem::directory_iterator(path())) {
      if (entry.path().filename() != "lost+found") return false;
    }
    return true;
  }
  std::uint64_t free_bytes() const {
    struct statvfs status {};
    statvfs(path().c_str(), &status);
    return status.f_bfree * status.f_frsize;
  }

 private:
  std::string mount_image(const std::string& options) const {
    const std::string image = folder_ / "image";
    return "truncate -s 32M " + image + " && mkfs.ext4 -q " + image + " && mount -o loop," + options + " " +
           image + " " + path();
  }

  static bool run(const std::string& command) {
    return std::system(("(" + command + ") 2>/dev/null").c_str()) == 0;
  }

  TemporaryFolder folder_;
  bool valid_ = false;
};

}  // namespace terrace::file_test

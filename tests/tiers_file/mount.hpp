// A small file system of the test's own. Needs root and the mount and mkfs programs; without them, valid() is
// false and why() says so.
#pragma once

#include <sys/statvfs.h>

#include <cstdlib>
#include <string>

#include "tiers/temporary_folder.hpp"

namespace terrace::testing {

class Mount {
 public:
  /// Memory of the given size, e.g. "1M".
  static Mount tmpfs(const std::string& size) {
    Mount mount;
    mount.run("mount -t tmpfs -o size=" + size + " none " + mount.path());
    return mount;
  }
  /// A disk of 32 MiB that journals all data, and therefore refuses direct I/O.
  static Mount journaled() { return ext4("data=journal"); }
  /// A disk of 32 MiB.
  static Mount disk() { return ext4("data=ordered"); }

  Mount(Mount&& other) = delete;
  ~Mount() {
    if (valid()) run("umount " + path());
  }

  bool valid() const { return valid_; }
  static const char* why() { return "no file system of our own: mounting needs root and mkfs.ext4"; }

  std::string path() const { return folder_ / "mounted"; }
  std::string operator/(const std::string& name) const { return path() + "/" + name; }
  bool empty() const {
    const std::filesystem::directory_iterator entries(path());
    return std::all_of(begin(entries), end(entries),
                       [](const auto& entry) { return entry.path().filename() == "lost+found"; });
  }
  std::uint64_t free_bytes() const {
    struct statvfs status {};
    statvfs(path().c_str(), &status);
    return status.f_bfree * status.f_frsize;
  }

 private:
  Mount() { std::filesystem::create_directory(path()); }

  static Mount ext4(const std::string& options) {
    Mount mount;
    const std::string image = mount.folder_ / "image";
    mount.run("truncate -s 32M " + image + " && mkfs.ext4 -q " + image + " && mount -o loop," + options + " " +
              image + " " + mount.path());
    return mount;
  }

  void run(const std::string& command) { valid_ = std::system(("(" + command + ") 2>/dev/null").c_str()) == 0; }

  TemporaryFolder folder_;
  bool valid_ = false;
};

}  // namespace terrace::testing

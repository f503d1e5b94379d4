// A SwapFile is a file that the system swaps to while it is in scope. It needs root.
#pragma once

#include <fcntl.h>
#include <sys/swap.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "line_process.hpp"
#include "terrace/bytes.hpp"

namespace terrace::bench {

class SwapFile {
 public:
  /// pre: nothing is at `path`
  SwapFile(std::filesystem::path path, Bytes size) : path_(std::move(path)) {
    const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) fail("make it");
    // A swap file must not have holes.
    errno = posix_fallocate(file, 0, static_cast<off_t>(size.count));
    const bool reserved = errno == 0;
    close(file);
    try {
      if (!reserved) fail("give it " + readable(size));
      LineProcess(
          {"/bin/sh", "-c", "PATH=$PATH:/usr/sbin:/sbin; mkswap \"$0\" >/dev/null && echo made", path_}, {})
          .read_line();
      if (swapon(path_.c_str(), 0) != 0) fail("use it for swap: run this as root, on ext4 or xfs");
    } catch (...) {
      std::filesystem::remove(path_);
      throw;
    }
  }
  SwapFile(const SwapFile&) = delete;
  SwapFile& operator=(const SwapFile&) = delete;
  /// The file is kept if the system still swaps to it.
  ~SwapFile() {
    std::error_code ignored;
    if (swapoff(path_.c_str()) == 0) std::filesystem::remove(path_, ignored);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error("swap file " + path_.native() + ": cannot " + what + " (" +
                             std::strerror(errno) + ")");
  }

  std::filesystem::path path_;
};

}  // namespace terrace::bench

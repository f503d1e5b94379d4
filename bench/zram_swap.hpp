// SPDX-License-Identifier: Apache-2.0
// A ZramSwap is compressed memory that the system swaps to while it is in scope. It needs root and a kernel
// with zram. What it takes is charged to no control group: used() says how much that was.
#pragma once

#include <sys/swap.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "line_process.hpp"
#include "terrace/bytes.hpp"

namespace terrace::bench {

class ZramSwap {
 public:
  explicit ZramSwap(Bytes size) {
    // Reading this file makes a device and says its number.
    if (!(std::ifstream("/sys/class/zram-control/hot_add") >> number_))
      throw std::runtime_error("this kernel has no zram");
    try {
      if (!(std::ofstream(settings() / "disksize") << size.count << std::flush)) fail("give it a size");
      LineProcess(
          {"/bin/sh", "-c", "PATH=$PATH:/usr/sbin:/sbin; mkswap \"$0\" >/dev/null && echo made", device()},
          {})
          .read_line();
      if (swapon(device().c_str(), 0) != 0) fail("use it for swap");
    } catch (...) {
      remove();
      throw;
    }
  }
  ZramSwap(const ZramSwap&) = delete;
  ZramSwap& operator=(const ZramSwap&) = delete;
  ~ZramSwap() {
    if (swapoff(device().c_str()) == 0) remove();
  }

  /// Memory that it takes now, and what that memory stands for.
  struct Use {
    Bytes taken, held;
  };
  Use used() const {
    std::uint64_t original = 0, compressed = 0, taken = 0;
    std::ifstream(settings() / "mm_stat") >> original >> compressed >> taken;
    return {Bytes{taken}, Bytes{original}};
  }

 private:
  std::string device() const { return "/dev/zram" + std::to_string(number_); }
  std::filesystem::path settings() const {
    return std::filesystem::path("/sys/block") / ("zram" + std::to_string(number_));
  }
  void remove() const { std::ofstream("/sys/class/zram-control/hot_remove") << number_ << std::flush; }
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(device() + ": cannot " + what + " (" + std::strerror(errno) + ")");
  }

  int number_ = -1;
};

}  // namespace terrace::bench

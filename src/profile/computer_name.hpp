// ComputerName: what distinguishes one computer from another when measurements are kept for later.
#pragma once

#include <filesystem>
#include <string>

namespace terrace {

struct ComputerName {
  std::string processor;  ///< `unknown processor` where the kernel does not say
  unsigned cores = 1;     ///< how many this process can keep busy
  std::string kernel;     ///< the release of the operating system's kernel
};

/// `root` is where /proc and /sys are looked for.
ComputerName computer_name(const std::filesystem::path& root = "/");

}  // namespace terrace

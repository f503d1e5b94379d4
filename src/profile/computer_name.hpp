// By what one computer is told from another when measurements are kept.
#pragma once

#include <filesystem>
#include <string>

namespace terrace {

struct ComputerName {
  std::string processor;  ///< `unknown processor` where the kernel does not say
  unsigned cores = 1;     ///< that this process can keep busy
  std::string kernel;     ///< its release
};

/// `root` is where /proc and /sys are looked for.
ComputerName computer_name(const std::filesystem::path& root = "/");

}  // namespace terrace

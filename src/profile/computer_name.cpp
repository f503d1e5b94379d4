// SPDX-License-Identifier: Apache-2.0
#include "profile/computer_name.hpp"

#include <fstream>

#include "base/kernel_list.hpp"
#include "base/system.hpp"

namespace terrace {
namespace {

/// `model name : Intel(R) ...`, as the first core has it.
std::string processor(const std::filesystem::path& root) {
  std::ifstream in(root / "proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

}  // namespace

ComputerName computer_name(const std::filesystem::path& root) {
  return {processor(root), probe_cores(root).usable(), first_line(root / "proc/sys/kernel/osrelease")};
}

}  // namespace terrace

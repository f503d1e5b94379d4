// SPDX-License-Identifier: Apache-2.0
#include "base/kernel_list.hpp"

#include <fstream>
#include <sstream>

namespace terrace {

std::string first_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

unsigned count_kernel_list(const std::string& list) {
  unsigned count = 0;
  std::istringstream in(list);
  for (std::string range; std::getline(in, range, ',');) {
    std::istringstream numbers(range);
    unsigned first = 0, last = 0;
    char dash = 0;
    if (!(numbers >> first)) continue;
    const bool is_range = (numbers >> dash >> last) && dash == '-' && last >= first;
    count += is_range ? last - first + 1 : 1;
  }
  return count;
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "terrace/machine_file.hpp"

#include "base/text_file.hpp"

namespace terrace {

Result<Machine> read_machine(const std::filesystem::path& path) {
  return parse_file(path, machine_from_json);
}

void write_machine(const Machine& machine, const std::filesystem::path& path) {
  write_text(path, to_json(machine));
}

}  // namespace terrace

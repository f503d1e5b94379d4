// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <span>

#include "base/input_file.hpp"
#include "base/replace_file.hpp"
#include "terrace/machine.hpp"

namespace terrace {

Result<Machine> read_machine(const std::filesystem::path& path) {
  const auto file = InputFile::open(path);
  if (!file) return file.error();
  const std::vector<std::byte> bytes = file->contents();
  auto machine = machine_from_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (machine) return machine;
  return Error{machine.error().code, fmt::format("{}: {}", path.native(), machine.error().message)};
}

void write_machine(const Machine& machine, const std::filesystem::path& path) {
  const std::string text = to_json(machine);
  const std::array pieces{std::as_bytes(std::span(text))};
  replace_file(path, pieces).value();
}

}  // namespace terrace

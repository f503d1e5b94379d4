// SPDX-License-Identifier: Apache-2.0
// Files that hold a machine, in the format of docs/formats/machine.md. They stand apart from machine.hpp,
// which most sources read, because paths make a header heavy.
#pragma once

#include <filesystem>

#include "terrace/machine.hpp"

namespace terrace {

Result<Machine> read_machine(const std::filesystem::path& path);
/// Replaces the file atomically. Throws ResultError where the path cannot be written to (see
/// base/replace_file.hpp) and EnvironmentError where the disk is full or fails; the previous file is
/// untouched then.
void write_machine(const Machine& machine, const std::filesystem::path& path);

}  // namespace terrace

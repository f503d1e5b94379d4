// SPDX-License-Identifier: Apache-2.0
// Whether a program can be run with a library loaded into it.
#pragma once

#include <filesystem>
#include <string>

#include "terrace/result.hpp"

namespace terrace::cli {

/// Finds the program that a word names, as a shell would. Fails with one sentence.
Result<std::filesystem::path> find_program(const std::string& word);

/// Fails with one sentence where the loader would ignore our library: a static or foreign executable, one
/// that gains rights when it is started, or a script of such an interpreter.
Result<void> can_be_loaded_into(const std::filesystem::path& program);

}  // namespace terrace::cli

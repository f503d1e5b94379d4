// SPDX-License-Identifier: Apache-2.0
#include "cli/run_program.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

namespace terrace::cli {
namespace {

namespace fs = std::filesystem;

Error refuse(const std::string& sentence) { return {ErrorCode::unsupported, sentence}; }

bool gains_rights(const fs::path& program) {
  struct stat status {};
  if (stat(program.c_str(), &status) != 0) return false;
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != getuid()) return true;
  if ((status.st_mode & S_ISGID) != 0 && status.st_gid != getgid()) return true;
  return getuid() != 0 && getxattr(program.c_str(), "security.capability", nullptr, 0) > 0;
}

/// `text` opens with `#!`. Returns the interpreter; the first argument of `env` where that is it.
std::string interpreter_of(const std::string& text) {
  std::istringstream line(text.substr(2, text.find('\n') - 2));
  std::string program, argument;
  line >> program >> argument;
  return fs::path(program).filename() == "env" && !argument.empty() ? argument : program;
}

Result<void> check_elf(const fs::path& program, std::ifstream& file) {
  Elf64_Ehdr head{};
  file.seekg(0);
  file.read(reinterpret_cast<char*>(&head), sizeof head);
#if defined(__x86_64__)
  constexpr auto kMachine = EM_X86_64;
#elif defined(__aarch64__)
  constexpr auto kMachine = EM_AARCH64;
#else
  constexpr auto kMachine = EM_NONE;
#endif
  if (!file || head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != kMachine)
    return refuse(
        fmt::format("{} is for another kind of processor or has 32 bits: only programs of this computer's "
                    "own kind can be run in less memory",
                    program.native()));
  for (unsigned i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr segment{};
    file.seekg(static_cast<std::streamoff>(head.e_phoff + std::uint64_t{i} * head.e_phentsize));
    file.read(reinterpret_cast<char*>(&segment), sizeof segment);
    if (file && segment.p_type == PT_INTERP) return {};
  }
  return refuse(
      fmt::format("{} is linked statically, so nothing can be loaded into it: use a dynamic build of it",
                  program.native()));
}

}  // namespace

Result<fs::path> find_program(const std::string& word) {
  std::error_code failed;
  const auto runs = [&](const fs::path& path) {
    return fs::is_regular_file(path, failed) && access(path.c_str(), X_OK) == 0;
  };
  if (word.find('/') != word.npos) {
    if (runs(word)) return fs::path(word);
    return Error{ErrorCode::invalid_argument, fmt::format("{} is no program that can be run", word)};
  }
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (runs(fs::path(folder) / word)) return fs::path(folder) / word;
  }
  return Error{ErrorCode::invalid_argument, fmt::format("there is no program '{}' in PATH", word)};
}

Result<void> can_be_loaded_into(const fs::path& program) {
  if (gains_rights(program))
    return refuse(
        fmt::format("{} gains rights when it is started, and the system then loads nothing into it: run it "
                    "as the user it belongs to",
                    program.native()));
  std::ifstream file(program, std::ios::binary);
  std::string start(256, '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<std::size_t>(file.gcount()));
  file.clear();
  if (start.starts_with("#!")) {
    const auto interpreter = find_program(interpreter_of(start));
    return interpreter ? can_be_loaded_into(*interpreter) : Result<void>(interpreter.error());
  }
  if (!start.starts_with("\177ELF"))
    return refuse(fmt::format("{} is neither an executable nor a script", program.native()));
  return check_elf(program, file);
}

}  // namespace terrace::cli

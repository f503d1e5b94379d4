// SPDX-License-Identifier: Apache-2.0
// A child process that answers one line for each line it is sent.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

extern char** environ;

namespace terrace::bench {

class LineProcess {
 public:
  /// `settings` are NAME=VALUE pairs that are added to this process's environment, or take the place of what
  /// is there.
  LineProcess(const std::vector<std::string>& command, const std::vector<std::string>& settings)
      : name_(command[0]) {
    int to_child[2], from_child[2];
    // The pipe is closed in other children, because one that held it open would keep its reader waiting for
    // ever.
    if (pipe2(to_child, O_CLOEXEC) != 0 || pipe2(from_child, O_CLOEXEC) != 0)
      throw std::runtime_error("cannot make a pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to_child[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, from_child[1], STDOUT_FILENO);
    std::vector<char*> arguments = pointers(command);
    std::vector<std::string> variables = settings;
    for (char** variable = environ; *variable != nullptr; ++variable) {
      // A shell would take the last of two with one name, the C library the first.
      if (!is_set(settings, *variable)) variables.emplace_back(*variable);
    }
    std::vector<char*> environment = pointers(variables);
    const int error =
        posix_spawnp(&child_, arguments[0], &actions, nullptr, arguments.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    close(to_child[0]);
    close(from_child[1]);
    in_ = fdopen(to_child[1], "w");
    out_ = fdopen(from_child[0], "r");
    if (error != 0) throw std::runtime_error("cannot start " + name_ + ": " + std::strerror(error));
  }
  LineProcess(const LineProcess&) = delete;
  LineProcess& operator=(const LineProcess&) = delete;
  ~LineProcess() {
    std::fclose(in_);
    std::fclose(out_);
    waitpid(child_, nullptr, 0);
  }

  std::string read_line() {
    std::string line;
    for (int c = std::fgetc(out_); c != '\n'; c = std::fgetc(out_)) {
      if (c == EOF) throw std::runtime_error(name_ + " ended without an answer: see its message above");
      line += static_cast<char>(c);
    }
    return line;
  }

  std::string ask(const std::string& line) {
    std::fprintf(in_, "%s\n", line.c_str());
    std::fflush(in_);
    return read_line();
  }

 private:
  static bool is_set(const std::vector<std::string>& settings, const std::string& variable) {
    const std::string name = variable.substr(0, variable.find('=') + 1);
    return std::any_of(settings.begin(), settings.end(),
                       [&](const std::string& setting) { return setting.starts_with(name); });
  }
  static std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
    all.push_back(nullptr);
    return all;
  }

  std::string name_;
  pid_t child_ = -1;
  std::FILE* in_ = nullptr;
  std::FILE* out_ = nullptr;
};

}  // namespace terrace::bench

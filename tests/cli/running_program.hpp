// The built program while it runs: its standard error is read as it comes, and signals can be sent to it.
#pragma once

#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace terrace::test {

class RunningProgram {
 public:
  enum class Listener { pipe, terminal };

  /// Standard output goes to the file `out`.
  RunningProgram(std::vector<std::string> arguments, const std::filesystem::path& out, Listener listener) {
    int ends[2];  // to read from, to write to
    const int made =
        listener == Listener::pipe ? pipe(ends) : openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr);
    if (made != 0) throw std::runtime_error("there is no pipe or terminal to be had");
    std::vector<char*> words{const_cast<char*>(TERRACE_PROGRAM)};
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    process_ = fork();
    if (process_ == 0) {
      dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
      dup2(ends[1], STDERR_FILENO);
      close(ends[0]), close(ends[1]);
      setenv("TERRACE_PROGRESS", "off", 1);
      execv(TERRACE_PROGRAM, words.data());
      _exit(127);
    }
    close(ends[1]);
    from_ = ends[0];
  }
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;
  ~RunningProgram() {
    if (process_ > 0) kill(process_, SIGKILL), wait();
    close(from_);
  }

  /// Reads until `text` stands in what the program said, or it says no more. Whether it does.
  bool wait_for(const std::string& text) {
    while (said_.find(text) == std::string::npos) {
      if (!read_some()) return false;
    }
    return true;
  }
  void send(int signal) const { kill(process_, signal); }

  /// Reads all that is left; the exit code, or -1 where a signal ended it.
  int wait() {
    while (read_some()) {
    }
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  const std::string& said() const { return said_; }

 private:
  bool read_some() {
    char buffer[4096];
    const ssize_t count = read(from_, buffer, sizeof buffer);
    if (count > 0) said_.append(buffer, static_cast<std::size_t>(count));
    return count > 0;
  }

  pid_t process_ = -1;
  int from_ = -1;
  std::string said_;
};

}  // namespace terrace::test

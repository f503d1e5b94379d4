// SPDX-License-Identifier: Apache-2.0
#include "base/child_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "terrace/error.hpp"

extern char** environ;  // NOLINT: posix_spawn wants it

namespace terrace {
namespace {

constexpr int kLookMilliseconds = 20;
constexpr std::size_t kKeptOfErrors = 4096;

/// One end of a pipe. In scope means open.
class End {
 public:
  End() = default;
  explicit End(int descriptor) : descriptor_(descriptor) {}
  End(End&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  End& operator=(End&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~End() { close(); }

  void close() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }
  int get() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

struct Pipe {
  End read, write;
};

/// Neither end is the child's unless it is given to it.
Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw EnvironmentError(fmt::format("cannot make a pipe to another program: {}", std::strerror(errno)),
                           {{}, {}, 0, errno});
  return {End(ends[0]), End(ends[1])};
}

/// While in scope, writing to a program that has ended is an error and no signal.
class WithoutBrokenPipes {
 public:
  WithoutBrokenPipes() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  WithoutBrokenPipes(const WithoutBrokenPipes&) = delete;
  WithoutBrokenPipes& operator=(const WithoutBrokenPipes&) = delete;
  ~WithoutBrokenPipes() {
    const timespec at_once{};
    while (sigtimedwait(&signal_, nullptr, &at_once) == SIGPIPE) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  const sigset_t& before() const { return before_; }
  const sigset_t& signal() const { return signal_; }

 private:
  sigset_t signal_{}, before_{};
};

class Child {
 public:
  /// Throws EnvironmentError where there are no pipes to be had. Then `error` says whether it was started.
  Child(const std::vector<std::string>& command, const WithoutBrokenPipes& signals) {
    Pipe in = make_pipe(), out = make_pipe(), err = make_pipe();
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&files, in.read.get(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, out.write.get(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, err.write.get(), STDERR_FILENO);
    posix_spawnattr_setsigmask(&attributes, &signals.before());
    posix_spawnattr_setsigdefault(&attributes, &signals.signal());
    // A group of its own: what it starts in turn ends with it.
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));  // NOLINT
    words.push_back(nullptr);
    error_ = posix_spawnp(&id_, words[0], &files, &attributes, words.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    in_ = std::move(in.write);
    out_ = std::move(out.read);
    err_ = std::move(err.read);
    fcntl(in_.get(), F_SETFL, O_NONBLOCK);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (error_ != 0 || waited_) return;
    kill(-id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }

  int error() const { return error_; }

  ChildOutcome talk(std::string_view input, const ChildLimits& limits) {
    ChildOutcome outcome;
    if (input.empty()) in_.close();
    while (out_.is_open() || err_.is_open()) {
      if (limits.stop.stop_requested()) return end_as(ChildOutcome::End::stopped, std::move(outcome));
      std::array<pollfd, 3> ends{{{in_.get(), POLLOUT, 0}, {out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}}};
      if (poll(ends.data(), ends.size(), kLookMilliseconds) <= 0) continue;
      if (ends[0].revents != 0) give(input);
      if (ends[1].revents != 0) take(out_, outcome.out);
      if (ends[2].revents != 0) take(err_, outcome.err);
      if (outcome.err.size() > kKeptOfErrors)
        outcome.err.erase(0, outcome.err.size() - kKeptOfErrors);
      if (outcome.out.size() > limits.output)
        return end_as(ChildOutcome::End::wrote_too_much, std::move(outcome));
    }
    return wait(std::move(outcome), limits);
  }

 private:
  void give(std::string_view& input) {
    const ssize_t written = write(in_.get(), input.data(), input.size());
    if (written < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (written > 0) input.remove_prefix(static_cast<std::size_t>(written));
    if (written < 0 || input.empty()) in_.close();  // It has all of it, or wants no more.
  }

  static void take(End& end, std::string& text) {
    std::array<char, 65536> buffer;
    const ssize_t got = read(end.get(), buffer.data(), buffer.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return end.close();
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }

  /// The destructor ends it.
  static ChildOutcome end_as(ChildOutcome::End end, ChildOutcome outcome) {
    outcome.end = end;
    return outcome;
  }

  /// It has closed its output and may still work.
  ChildOutcome wait(ChildOutcome outcome, const ChildLimits& limits) {
    int status = 0;
    for (;;) {
      const pid_t ended = waitpid(id_, &status, WNOHANG);
      if (ended == id_) break;
      if (limits.stop.stop_requested()) return end_as(ChildOutcome::End::stopped, std::move(outcome));
      poll(nullptr, 0, 1);
    }
    waited_ = true;
    const bool exited = WIFEXITED(status);
    outcome.end = exited ? ChildOutcome::End::exited : ChildOutcome::End::killed;
    outcome.code = exited ? WEXITSTATUS(status) : WTERMSIG(status);
    return outcome;
  }

  End in_, out_, err_;
  pid_t id_ = -1;
  int error_ = 0;
  bool waited_ = false;
};

}  // namespace

Result<ChildOutcome> run_child(const std::vector<std::string>& command, std::string_view input,
                               const ChildLimits& limits) {
  const WithoutBrokenPipes signals;
  Child child(command, signals);
  if (child.error() == 0) return child.talk(input, limits);
  const bool in_path = command[0].find('/') == std::string::npos;
  return Error{ErrorCode::invalid_argument,
               fmt::format("cannot start {}: {}{}", command[0], std::strerror(child.error()),
                           in_path ? fmt::format("; a program in this folder is ./{}", command[0]) : "")};
}

}  // namespace terrace

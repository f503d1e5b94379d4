// PyTorch serves as a reference in a process of its own, tests/torch/server.py, which answers one request at
// a time.
//
//   TorchServer torch({});
//   write_tensors(torch.file("in"), {{"input0", ...}});
//   torch.ask({{"op", "relu"}, {"tensors", torch.file("in")}, {"result", torch.file("out")}});
//
// Starting takes seconds, so a test program shares one server. TERRACE_PYTHON names another interpreter than
// Debian's. Any problem with the server throws std::runtime_error with a sentence; no call waits for ever.
#pragma once

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/safetensors.hpp"
#include "terrace/shape.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace {

/// A tensor in this process, row-major, of floats or of integers.
struct HostTensor {
  Shape shape;
  std::vector<float> floats;
  std::vector<std::int32_t> integers;

  bool is_integer() const { return !integers.empty(); }
};
using HostTensors = std::map<std::string, HostTensor>;

inline void write_tensors(const std::string& path, const HostTensors& tensors) {
  std::vector<safetensors::Tensor> views;
  for (const auto& [name, tensor] : tensors) {
    const auto bytes = tensor.is_integer() ? std::as_bytes(std::span(tensor.integers))
                                           : std::as_bytes(std::span(tensor.floats));
    views.push_back({name,
                     tensor.is_integer() ? safetensors::DType::i32 : safetensors::DType::f32,
                     {tensor.shape.begin(), tensor.shape.end()},
                     bytes});
  }
  safetensors::write(path, views).value();
}

inline HostTensors read_tensors(const std::string& path) {
  const auto file = safetensors::read(path).value();
  HostTensors tensors;
  for (const safetensors::Tensor& stored : file.tensors()) {
    HostTensor& tensor = tensors[stored.name];
    for (const std::uint64_t extent : stored.shape) tensor.shape.push_back(static_cast<std::int64_t>(extent));
    tensor.floats.resize(stored.bytes.size() / sizeof(float));
    std::memcpy(tensor.floats.data(), stored.bytes.data(), stored.bytes.size());
  }
  return tensors;
}

class TorchServer {
 public:
  struct Options {
    std::string python = chosen_python();
    std::string script = TERRACE_TESTS "/torch/server.py";
    std::chrono::milliseconds patience = std::chrono::minutes(5);  ///< time limit of one answer
  };

  explicit TorchServer(Options options) : options_(std::move(options)) { start(); }
  TorchServer(const TorchServer&) = delete;
  TorchServer& operator=(const TorchServer&) = delete;
  ~TorchServer() {
    stop(SIGTERM);
    if (socket_ >= 0) close(socket_);
  }

  /// Returns a path for a file that is exchanged with the server.
  std::string file(const std::string& name) const { return folder_ / name.c_str(); }

  /// Sends one request and waits for its answer.
  nlohmann::json ask(const nlohmann::json& request) {
    send_line(request.dump() + "\n");
    const std::string line = receive_line();
    const auto answer = nlohmann::json::parse(line, nullptr, false);
    if (answer.is_discarded() || !answer.is_object())
      fail("answered what is no JSON object: " + line.substr(0, 200));
    if (answer.contains("error")) fail("refused: " + answer["error"].get<std::string>());
    return answer;
  }

 private:
  static std::string chosen_python() {
    const char* chosen = std::getenv("TERRACE_PYTHON");
    return chosen != nullptr ? chosen : "/usr/bin/python3";
  }

  void start() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail("has no socket");
    socket_ = ends[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    char* const arguments[] = {options_.python.data(), options_.script.data(), nullptr};
    const int error = posix_spawn(&process_, options_.python.c_str(), &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error != 0) {
      process_ = -1;
      fail(std::string("did not start: ") + std::strerror(error));
    }
  }

  void send_line(const std::string& line) {
    for (std::size_t sent = 0; sent < line.size();) {
      const ssize_t more = send(socket_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
      if (more <= 0) fail("ended");
      sent += static_cast<std::size_t>(more);
    }
  }

  std::string receive_line() {
    while (pending_.find('\n') == std::string::npos) {
      pollfd readable{socket_, POLLIN, 0};
      if (poll(&readable, 1, static_cast<int>(options_.patience.count())) == 0) {
        stop(SIGKILL);
        fail("did not answer for " + std::to_string(options_.patience.count()) + " ms");
      }
      char buffer[4096];
      const ssize_t got = recv(socket_, buffer, sizeof buffer, 0);
      if (got <= 0) fail("ended");
      pending_.append(buffer, static_cast<std::size_t>(got));
    }
    const std::size_t end = pending_.find('\n');
    std::string line = pending_.substr(0, end);
    pending_.erase(0, end + 1);
    return line;
  }

  void stop(int signal) {
    if (process_ > 0) {
      kill(process_, signal);
      waitpid(process_, nullptr, 0);
    }
    process_ = -1;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(
        "the PyTorch reference (" + options_.python + " " + options_.script + ") " + what +
        "; it needs python3-torch and python3-torchvision: scripts/install-packages torch");
  }

  Options options_;
  TemporaryFolder folder_;
  int socket_ = -1;
  pid_t process_ = -1;
  std::string pending_;
};

}  // namespace terrace

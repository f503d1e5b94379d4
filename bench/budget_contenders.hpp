// The contenders that train in a share of memory (budget.cpp), each as a process of its own.
#pragma once

#include <optional>
#include <thread>

#include "contender.hpp"

namespace terrace::bench {

struct Case {
  std::string model;
  std::int64_t batch = 0;
  std::optional<std::int64_t> sequence{};
  std::string dropout{};  ///< the published dropout, where PyTorch's network needs it as an option

  bool takes_images() const { return !sequence; }
};

inline const std::vector<Case>& cases() {
  static const std::vector<Case> all{{"resnet50", 32},  {"vgg16", 8, {}, "0.5"}, {"resnet152", 8},
                                     {"mobilenet", 32}, {"lstm", 20, 35, "0.5"}, {"gpt2", 4, 256, "0.1"}};
  return all;
}

inline nlohmann::json task_of(const Case& one, const nlohmann::json& fast,
                              const nlohmann::json& planner = "best") {
  return {{"model", one.model},
          {"batch", one.batch},
          {"sequence", one.sequence ? nlohmann::json(*one.sequence) : nlohmann::json()},
          {"threads", std::thread::hardware_concurrency()},
          {"fast", fast},
          {"slow", nullptr},
          {"planner", planner}};
}

using Owned = std::unique_ptr<Contender>;

inline Owned ours(const std::string& program, const std::string& planner, const Case& one, int percent,
                  Bytes limit) {
  const nlohmann::json task = task_of(one, std::to_string(percent) + "%", planner);
  return std::make_unique<Contender>(planner, std::vector{program, std::string("--contender"), task.dump()},
                                     std::vector<std::string>{},
                                     std::make_unique<MemoryGroup>(planner, limit, MemoryGroup::Swap::none));
}

/// Runs with all memory and with kernels split as ours are in that share.
inline Owned unlimited(const std::string& program, const Case& one, int percent) {
  const nlohmann::json task = task_of(one, std::to_string(percent) + "%", nullptr);
  return std::make_unique<Contender>("terrace, all memory",
                                     std::vector{program, std::string("--contender"), task.dump()},
                                     std::vector<std::string>{});
}

/// Memory that is returned to the system need not be swapped, so malloc's thresholds are not raised here.
inline Owned rival(const Case& one, Bytes limit) {
  const std::string threads = std::to_string(std::thread::hardware_concurrency());
  std::vector<std::string> command{"/usr/bin/python3", "bench/torch/rival.py",    "--model",   one.model,
                                   "--batch",          std::to_string(one.batch), "--threads", threads};
  if (one.takes_images()) command.insert(command.end(), {"--layout", "channels_last"});
  if (one.sequence) command.insert(command.end(), {"--sequence", std::to_string(*one.sequence)});
  if (!one.dropout.empty()) command.insert(command.end(), {"--dropout", one.dropout});
  return std::make_unique<Contender>(
      "pytorch, swap", command,
      std::vector<std::string>{"OPENBLAS_CORETYPE=SkylakeX", "OPENBLAS_NUM_THREADS=" + threads,
                               "OMP_NUM_THREADS=" + threads},
      std::make_unique<MemoryGroup>("pytorch", limit, MemoryGroup::Swap::unlimited));
}

/// A contender that may fail: a planner may have no plan, and PyTorch may be killed in a small group.
class Attempted {
 public:
  template <class Start>
  void start(const Start& start, int warm_up) {
    attempt([&] {
      contender_ = start();
      contender_->warm_up(warm_up);
    });
  }
  void step() {
    attempt([&] { contender_->step(); });
  }
  bool lives() const { return contender_ != nullptr; }
  Contender& operator*() const { return *contender_; }
  const std::string& end() const { return end_; }

 private:
  template <class Work>
  void attempt(const Work& work) {
    if (!end_.empty()) return;
    try {
      work();
    } catch (const std::exception& error) {
      end_ = error.what();
      contender_ = nullptr;
    }
  }

  Owned contender_;
  std::string end_;
};

}  // namespace terrace::bench

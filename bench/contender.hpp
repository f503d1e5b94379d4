// A Contender is a process that runs one training step per request and answers with JSON.
//
// `step` answers with `seconds`, `loss` and other figures of that step, `memory` with `peak_rss_bytes`.
// Contenders that alternate see the same disturbances of the computer, and each has a resident peak of its
// own.
#pragma once

#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "line_process.hpp"
#include "memory_group.hpp"
#include "report.hpp"

namespace terrace::bench {

class Contender {
 public:
  /// Starts the process in `group`, which may be nullptr, and waits until it is ready; throws with its reason
  /// where it answers `refused`.
  Contender(std::string name, const std::vector<std::string>& command,
            const std::vector<std::string>& settings, std::unique_ptr<MemoryGroup> group = nullptr)
      : name_(std::move(name)),
        group_(std::move(group)),
        process_(group_ ? group_->within(command) : command, settings),
        ready_(nlohmann::json::parse(process_.read_line())) {
    if (ready_.contains("refused")) throw std::runtime_error(ready_.at("refused").get<std::string>());
  }

  /// Runs steps that are not counted, in which memory grows and kernels are created.
  void warm_up(int steps) {
    for (int i = 0; i < steps; ++i) step();
    seconds_.clear();
  }

  const nlohmann::json& step() {
    last_ = nlohmann::json::parse(process_.ask("step"));
    if (!std::isfinite(last_.at("loss").get<double>()))
      throw std::runtime_error(name_ + " lost its way: the loss is no number");
    seconds_.push_back(last_.at("seconds"));
    return last_;
  }

  const std::string& name() const { return name_; }
  const nlohmann::json& ready() const { return ready_; }
  const nlohmann::json& last() const { return last_; }
  const std::vector<double>& seconds() const { return seconds_; }

  /// Returns all figures of the contender. pre: it has run steps that count
  nlohmann::json summary() {
    nlohmann::json all{{"median_seconds", median(seconds_)},
                       {"spread", spread(seconds_)},
                       {"seconds", seconds_},
                       {"last_loss", last_.at("loss")}};
    all.update(nlohmann::json::parse(process_.ask("memory")));
    if (group_) {
      all["group_limit_bytes"] = group_->limit().count;
      all["group_peak_bytes"] = group_->peak().count;
    }
    return all;
  }

 private:
  std::string name_;
  std::unique_ptr<MemoryGroup> group_;  // declared first, because it outlives its process
  LineProcess process_;
  nlohmann::json ready_, last_;
  std::vector<double> seconds_;
};

/// A folder that is removed with this object.
class ScratchFolder {
 public:
  explicit ScratchFolder(std::filesystem::path path) : path_(std::filesystem::absolute(std::move(path))) {
    std::filesystem::create_directories(path_);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace terrace::bench

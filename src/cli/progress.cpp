#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace terrace::cli {
namespace {

constexpr std::chrono::seconds kPatience{1};

bool asked_for_quiet() {
  const char* value = std::getenv("TERRACE_PROGRESS");  // NOLINT: no other thread sets it
  return value != nullptr && std::string_view(value) == "off";
}

std::string without_numbers(const std::string& text) {
  std::string kept;
  for (const char c : text) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) kept += c;
  }
  return kept;
}

void write_line(const std::string& text) { fmt::print(stderr, "{}\n", text); }

}  // namespace

ProgressLine::ProgressLine() : watched_(isatty(STDERR_FILENO) != 0), quiet_(watched_ || asked_for_quiet()) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::show(const std::string& text) {
  if (!watched_) return begin_stage(text);
  fmt::print(stderr, "\r{:<{}}", text, shown_);
  shown_ = text.size();
}

void ProgressLine::begin_stage(const std::string& text) {
  if (quiet_) return;
  const std::lock_guard lock(mutex_);
  std::string stage = without_numbers(text);
  if (stage == stage_) return;
  stage_ = std::move(stage);
  if (takes_long_) return write_line(text);
  unsaid_.push_back(text);
  if (timer_.joinable()) return;
  timer_ = std::jthread([this](const std::stop_token& ended) {
    std::condition_variable_any over;
    std::unique_lock waiting(mutex_);
    over.wait_for(waiting, ended, kPatience, [] { return false; });
    if (ended.stop_requested()) return;
    takes_long_ = true;
    for (const std::string& line : unsaid_) write_line(line);
    unsaid_.clear();
  });
}

void ProgressLine::say(const std::string& text) const {
  if (!watched_) write_line(text);
}

void ProgressLine::clear() {
  if (shown_ > 0) fmt::print(stderr, "\r{:<{}}\r", "", shown_);
  shown_ = 0;
  if (!timer_.joinable()) return;
  timer_.request_stop();
  timer_.join();
  const std::lock_guard lock(mutex_);
  unsaid_.clear();
  stage_.clear();
}

std::function<void(double)> ProgressLine::measuring(std::string what) {
  return [this, what = std::move(what)](double share) {
    show(fmt::format("{}: {:3.0f}%", what, share * 100));
  };
}

}  // namespace terrace::cli

// What a command says while it works, on standard error: to a terminal one line that overwrites itself and is
// gone in the end; to a file or pipe whole lines, few of them.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>

namespace terrace::cli {

class ProgressLine {
 public:
  ProgressLine() : watched_(isatty(STDERR_FILENO) != 0) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { clear(); }

  /// Whether someone sits before it.
  bool watched() const { return watched_; }

  /// What happens right now: for a terminal only.
  void show(const std::string& text) {
    if (!watched_) return;
    fmt::print(stderr, "\r{:<{}}", text, shown_);
    shown_ = text.size();
  }

  /// A line for those who read it later.
  void say(const std::string& text) const {
    if (!watched_) fmt::print(stderr, "{}\n", text);
  }

  void clear() {
    if (shown_ > 0) fmt::print(stderr, "\r{:<{}}\r", "", shown_);
    shown_ = 0;
  }

  std::function<void(double)> measuring(std::string what) {
    return [this, what = std::move(what)](double share) {
      show(fmt::format("{}: {:3.0f}%", what, share * 100));
    };
  }

 private:
  bool watched_;
  std::size_t shown_ = 0;  ///< characters standing on the terminal's line
};

}  // namespace terrace::cli

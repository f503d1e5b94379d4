// SPDX-License-Identifier: Apache-2.0
// What a command says while it works, on standard error: to a terminal one line that overwrites itself and is
// gone in the end; to a file or pipe whole lines, few of them. There a command that takes more than a second
// says each of its stages in a line of its own, unless TERRACE_PROGRESS is `off`.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace terrace::cli {

class ProgressLine {
 public:
  ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  /// Returns whether someone watches the line on a terminal.
  bool watched() const { return watched_; }

  /// What happens right now. Texts that differ in numbers only are one stage.
  void show(const std::string& text);

  /// A line for those who read it later.
  void say(const std::string& text) const;

  /// What happened, wherever it is read.
  void tell(const std::string& text) { watched_ ? show(text) : say(text); }

  /// The work is done: nothing is left on the terminal, and no stage follows.
  void clear();

  std::function<void(double)> measuring(std::string what);

 private:
  void begin_stage(const std::string& text);

  bool watched_;
  bool quiet_;             ///< says no stages
  std::size_t shown_ = 0;  ///< characters standing on the terminal's line
  std::mutex mutex_;       ///< guards what stands below, which the timer uses, too
  std::string stage_;      ///< the last one, without its numbers
  std::vector<std::string> unsaid_;
  bool takes_long_ = false;
  std::jthread timer_;  ///< ends the first second
};

}  // namespace terrace::cli

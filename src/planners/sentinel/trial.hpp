// SPDX-License-Identifier: Apache-2.0
// Test-and-trial (002 section 4.4.4): real steps decide for every interval whose tensors do not arrive in
// time whether its kernels wait or use them in slow memory.
//
// One interval is tried after the other, with a step that waits and a step that leaves, while all others are
// as decided so far. It is a plain value: ask what to try, run it, tell how long it took, until it is done.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "terrace/bytes.hpp"

namespace terrace::sentinel {

class Trial {
 public:
  /// `late`: the intervals in which Case 3 happens; `repeats`: steps for each answer, of which the shortest
  /// counts. pre: repeats > 0
  explicit Trial(std::vector<std::uint32_t> late, std::uint32_t repeats = 1);

  bool done() const { return at_ == late_.size(); }
  /// Returns how many intervals have their answer.
  std::size_t decided() const { return at_; }
  /// Returns the value of the planner's option `end` for the next step; once done, for all steps to come.
  std::string end() const;
  /// Returns the same value with the interval on trial leaving. pre: !done()
  std::string leaving() const;
  /// Takes how long the step with `end()` took. pre: !done()
  void took(Seconds step);
  /// Decides without a step that the interval on trial waits, because it has no choice. pre: !done(), none
  /// was taken for it
  void skip();
  /// Returns how many real steps are left until it is done.
  std::uint32_t steps_left() const;
  /// Returns the time of a step with what was decided last; Seconds::max() where no step was taken.
  Seconds best() const { return best_; }

 private:
  std::string answer(bool on_trial_leaves) const;

  std::vector<std::uint32_t> late_;
  std::uint32_t repeats_;
  std::vector<bool> leaves_;
  std::size_t at_ = 0;  ///< the interval on trial
  std::uint32_t tried_ = 0;
  Seconds waiting_{0}, leaving_{0}, best_ = Seconds::max();
};

}  // namespace terrace::sentinel

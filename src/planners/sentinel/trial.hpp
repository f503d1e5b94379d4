// SPDX-License-Identifier: Apache-2.0
// Test-and-trial (002 section 4.4.4): real steps decide for every interval whose tensors do not arrive in
// time whether its kernels wait or use them in slow memory.
//
// One interval after the other: a step that waits, a step that leaves, with all others as decided so far. A
// plain value: ask what to try, run it, tell how long it took, until it is done.
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
  /// Intervals that have their answer.
  std::size_t decided() const { return at_; }
  /// The value of the planner's option `end` for the next step; once done, for all steps to come.
  std::string end() const;
  /// The same where the interval on trial leaves. pre: !done()
  std::string leaving() const;
  /// What the step with `end()` took. pre: !done()
  void took(Seconds step);
  /// The interval on trial has no choice: it waits, and takes no step. pre: !done(), none was taken for it
  void skip();
  /// Real steps from now until it is done.
  std::uint32_t steps_left() const;
  /// A step with what was decided last; Seconds::max() where no step was taken.
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

// SPDX-License-Identifier: Apache-2.0
#include "planners/sentinel/trial.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace terrace::sentinel {

Trial::Trial(std::vector<std::uint32_t> late, std::uint32_t repeats)
    : late_(std::move(late)), repeats_(repeats), leaves_(late_.size()) {
  check(repeats > 0, "an answer is tried at least once");
}

std::string Trial::answer(bool on_trial_leaves) const {
  std::string list;
  for (std::size_t i = 0; i < late_.size(); ++i) {
    if (leaves_[i] || (i == at_ && on_trial_leaves))
      list += (list.empty() ? "leave:" : ",") + std::to_string(late_[i]);
  }
  return list.empty() ? "wait" : list;
}

std::string Trial::end() const { return answer(tried_ >= repeats_); }

std::string Trial::leaving() const {
  check(!done(), "an interval is on trial");
  return answer(true);
}

void Trial::took(Seconds step) {
  check(!done(), "nothing is left to try");
  Seconds& best = tried_ < repeats_ ? waiting_ : leaving_;
  const bool first = tried_ % repeats_ == 0;
  best = first ? step : std::min(best, step);
  if (++tried_ < 2 * repeats_) return;
  leaves_[at_] = leaving_ < waiting_;
  best_ = std::min(waiting_, leaving_);
  ++at_;
  tried_ = 0;
}

void Trial::skip() {
  check(!done() && tried_ == 0, "an interval is skipped before it is tried");
  ++at_;
}

std::uint32_t Trial::steps_left() const {
  const auto intervals = static_cast<std::uint32_t>(late_.size() - at_);
  return 2 * repeats_ * intervals - tried_;
}

}  // namespace terrace::sentinel

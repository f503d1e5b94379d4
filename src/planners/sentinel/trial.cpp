#include "planners/sentinel/trial.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace terrace::sentinel {

Trial::Trial(std::vector<std::uint32_t> late, std::uint32_t repeats)
    : late_(std::move(late)), repeats_(repeats), leaves_(late_.size()) {
  check(repeats > 0, "an answer is tried at least once");
}

std::string Trial::end() const {
  std::string list;
  for (std::size_t i = 0; i < late_.size(); ++i) {
    const bool on_trial = i == at_ && tried_ >= repeats_;
    if (leaves_[i] || on_trial) list += (list.empty() ? "leave:" : ",") + std::to_string(late_[i]);
  }
  return list.empty() ? "wait" : list;
}

void Trial::took(Seconds step) {
  check(!done(), "nothing is left to try");
  Seconds& best = tried_ < repeats_ ? waiting_ : leaving_;
  const bool first = tried_ % repeats_ == 0;
  best = first ? step : std::min(best, step);
  if (++tried_ < 2 * repeats_) return;
  leaves_[at_] = leaving_ < waiting_;
  ++at_;
  tried_ = 0;
}

std::uint32_t Trial::steps_left() const {
  const auto intervals = static_cast<std::uint32_t>(late_.size() - at_);
  return 2 * repeats_ * intervals - tried_;
}

}  // namespace terrace::sentinel

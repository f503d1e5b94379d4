// SPDX-License-Identifier: Apache-2.0
// Pool: the nearest candidates of a beam search, sorted, with a mark on those whose neighbours were looked
// at. It is Algorithm 3's candidates and result list at once: a candidate that fell out of the results would
// end the search if it were its turn.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace terrace::ann {

struct Candidate {
  float distance = 0;
  std::uint32_t id = 0;
  bool expanded = false;

  /// Ties go to the smaller id, so that answers do not depend on the order of arrival.
  bool nearer_than(const Candidate& other) const {
    return distance < other.distance || (distance == other.distance && id < other.id);
  }
};

class Pool {
 public:
  /// Empties it, to hold `most` from here on. pre: most > 0
  void reset(std::size_t most) {
    most_ = most;
    next_ = 0;
    held_.clear();
    held_.reserve(most + 1);
  }

  /// Whether one of that distance would be kept for sure or by its id.
  bool may_keep(float distance) const { return held_.size() < most_ || distance <= held_.back().distance; }

  void insert(const Candidate& one) {
    if (held_.size() == most_ && !one.nearer_than(held_.back())) return;
    const auto at = std::upper_bound(held_.begin(), held_.end(), one,
                                     [](const Candidate& a, const Candidate& b) { return a.nearer_than(b); });
    const auto position = static_cast<std::size_t>(at - held_.begin());
    held_.insert(at, one);
    if (held_.size() > most_) held_.pop_back();
    if (!one.expanded) next_ = std::min(next_, position);
  }

  /// Marks the nearest one whose turn has not come and returns it, or nullptr where all had theirs.
  const Candidate* expand_next() {
    if (next() == nullptr) return nullptr;
    held_[next_].expanded = true;
    return &held_[next_++];
  }

  /// The nearest one whose turn has not come, or nullptr.
  const Candidate* next() {
    while (next_ < held_.size() && held_[next_].expanded) ++next_;
    return next_ == held_.size() ? nullptr : &held_[next_];
  }

  /// How many of the nearest had their turn, one after the other without a gap.
  std::size_t expanded_ahead() const { return next_; }

  const std::vector<Candidate>& held() const { return held_; }

 private:
  std::size_t most_ = 1;
  std::size_t next_ = 0;  // before it all are expanded
  std::vector<Candidate> held_;
};

}  // namespace terrace::ann

// SPDX-License-Identifier: Apache-2.0
#include "exec/lane_team.hpp"

#include <utility>

namespace terrace {

LaneTeam::LaneTeam(std::vector<Lane> lanes) : lanes_(std::move(lanes)), counts_(lanes_.size()) {
  try {
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      if (lanes_[i].work) threads_.emplace_back([this, i] { live(i); });
    }
  } catch (...) {  // A refused thread leaves a team without a destructor, and those that run must end.
    end();
    throw;
  }
}

LaneTeam::~LaneTeam() { end(); }

void LaneTeam::end() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void LaneTeam::step() {
  std::unique_lock lock(mutex_);
  counts_.assign(lanes_.size(), {});
  failure_ = nullptr;
  working_ = threads_.size();
  ++steps_;
  changed_.notify_all();
  changed_.wait(lock, [this] { return working_ == 0; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void LaneTeam::live(std::size_t lane) {
  bool entered = false;
  for (std::uint64_t seen = 0;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ending_ || steps_ != seen; });
      if (ending_) return;
      seen = steps_;
    }
    work(lane, entered);
    const std::lock_guard lock(mutex_);
    --working_;
    changed_.notify_all();
  }
}

void LaneTeam::work(std::size_t lane, bool& entered) {
  try {
    if (!entered && lanes_[lane].enter) lanes_[lane].enter();
    entered = true;
    lanes_[lane].work();
  } catch (const Stopped&) {
    // Another lane's failure is the one to report.
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    changed_.notify_all();
  }
}

template <class Condition>
void LaneTeam::wait_until(Condition holds) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failure_ != nullptr || holds(); });
  if (failure_) throw Stopped{};
}

void LaneTeam::change(std::uint32_t Counts::*count, std::uint32_t lane) {
  const std::lock_guard lock(mutex_);
  ++(counts_[lane].*count);
  changed_.notify_all();
}

void LaneTeam::issue(std::uint32_t lane) { change(&Counts::issued, lane); }
void LaneTeam::complete(std::uint32_t lane) { change(&Counts::complete, lane); }
void LaneTeam::wait_for_issue(std::uint32_t lane, std::uint32_t number) {
  wait_until([&] { return counts_[lane].issued >= number; });
}
void LaneTeam::wait_for(std::uint32_t lane, std::uint32_t number) {
  wait_until([&] { return counts_[lane].complete >= number; });
}

}  // namespace terrace

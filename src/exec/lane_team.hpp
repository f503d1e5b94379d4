// SPDX-License-Identifier: Apache-2.0
// LaneTeam: threads that work side by side, one for each lane of a step, and what they tell each other.
//
// Lanes count two things: how many of their actions were issued, and how many are complete. Whoever needs
// another lane's progress waits for a count. What one lane throws ends the step: all others stop at their
// next action or wait, and whoever asked for the step gets the first failure when every lane is idle again.
// Threads live as long as the team and sleep between steps.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace terrace {

class LaneTeam {
 public:
  struct Lane {
    std::function<void()> enter =
        {};  ///< called by the lane's thread before its first step, until it succeeds
    std::function<void()> work = {};  ///< its part of a step; none: the lane has no thread
  };
  explicit LaneTeam(std::vector<Lane> lanes);
  LaneTeam(const LaneTeam&) = delete;
  LaneTeam& operator=(const LaneTeam&) = delete;
  ~LaneTeam();

  /// Every lane works once. Throws the first failure. One thread at a time.
  void step();

  // For lanes while they work. Those that wait end the lane's work where the step has failed.
  void issue(std::uint32_t lane);
  void complete(std::uint32_t lane);
  void wait_for_issue(std::uint32_t lane, std::uint32_t number);
  void wait_for(std::uint32_t lane, std::uint32_t number);

 private:
  struct Stopped {};
  struct Counts {
    std::uint32_t issued = 0, complete = 0;
  };
  void live(std::size_t lane);
  void work(std::size_t lane, bool& entered);
  void end();
  template <class Condition>
  void wait_until(Condition holds);
  void change(std::uint32_t Counts::*count, std::uint32_t lane);

  std::vector<Lane> lanes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Counts> counts_;  // all below are guarded by mutex_
  std::exception_ptr failure_;
  std::uint64_t steps_ = 0;
  std::size_t working_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;  // last: they use all of the others
};

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// LaneClocks: what is known to have ended at each moment of a plan, by vector clocks over its lanes.
//
//   event   a transfer or a run: the lane it is on, and its number there, counted from one
//   clock   for each lane, how many of its events have ended: one number is enough, since a lane works in
//   order
//
// An event starts with what the issuing of instructions knew, what its lane knew and what the tickets knew
// that it comes after; its end adds itself to that. Two events that neither knows to have ended when it
// starts may overlap: that is the only rule, and its cost is one comparison for each lane.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "terrace/machine.hpp"

namespace terrace {

struct LaneEvent {
  std::uint32_t lane = 0;
  std::uint32_t number = 0;  ///< 0: before everything
};

class LaneClocks {
 public:
  using Clock = std::vector<std::uint32_t>;

  /// Engines have the first lanes, links those behind them, and the last one is for links that do not exist.
  explicit LaneClocks(const Machine& machine)
      : engines_(machine.engine_count()),
        tiers_(machine.tiers.size()),
        link_lanes_(tiers_ * tiers_, static_cast<std::uint32_t>(engines_ + machine.links.size())) {
    for (std::uint32_t i = 0; i < machine.links.size(); ++i) {
      const Link& link = machine.links[i];
      link_lanes_[link.from.index * tiers_ + link.to.index] = static_cast<std::uint32_t>(engines_) + i;
    }
    issued_.resize(engines_ + machine.links.size() + 1);
    started_ = issued_;
    ended_.assign(issued_.size(), issued_);
  }

  std::size_t lanes() const { return issued_.size(); }
  bool is_engine(std::uint32_t lane) const { return lane < engines_; }
  std::uint32_t lane_of(EngineId engine) const { return engine.index; }
  std::uint32_t lane_of(TierId from, TierId to) const { return link_lanes_[from.index * tiers_ + to.index]; }

  /// Puts the next event on a lane; `started` is then what has ended when it starts.
  LaneEvent issue(std::uint32_t lane, std::span<const Clock* const> after) {
    started_ = issued_;
    join(started_, ended_[lane]);
    for (const Clock* clock : after) join(started_, *clock);
    Clock& ended = ended_[lane];
    const std::uint32_t number = ended[lane] + 1;
    ended = started_;
    ended[lane] = number;
    return {lane, number};
  }
  /// Returns what is known when the lane's last event has ended.
  const Clock& ended(std::uint32_t lane) const { return ended_[lane]; }
  /// Nothing more is issued before what that clock knows has ended.
  void wait(const Clock& clock) { join(issued_, clock); }

  /// Returns what has ended when the next instruction is issued.
  const Clock& issued() const { return issued_; }
  const Clock& started() const { return started_; }
  static bool is_over(LaneEvent event, const Clock& clock) { return event.number <= clock[event.lane]; }

 private:
  static void join(Clock& clock, const Clock& other) {
    for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other[i]);
  }

  std::size_t engines_, tiers_;
  std::vector<std::uint32_t> link_lanes_;  // from tier by tier
  Clock issued_, started_;
  std::vector<Clock> ended_;  // by lane
};

}  // namespace terrace

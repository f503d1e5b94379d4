// SPDX-License-Identifier: Apache-2.0
#include "sim/link_lanes.hpp"

#include <algorithm>
#include <limits>

#include "base/check.hpp"

namespace terrace {

LinkLanes::LinkLanes(const Machine& machine) : machine_(machine) {
  for (const Link& link : machine.links) {
    const Link* opposite = machine.link(link.to, link.from);
    const auto number = (opposite != nullptr ? opposite : &link) - machine.links.data();
    lanes_.push_back({&link, static_cast<std::size_t>(number)});
  }
}

std::size_t LinkLanes::lane_of(TierId from, TierId to) const {
  const Link* link = machine_.link(from, to);
  check(link != nullptr, "a copy goes over a link of the machine");
  return static_cast<std::size_t>(link - machine_.links.data());
}

std::size_t LinkLanes::queue(TierId from, TierId to, Bytes bytes, bool held) {
  Lane& lane = lanes_[lane_of(from, to)];
  const std::size_t number = done_.size();
  done_.push_back(false);
  intervals_.push_back({});
  lane.moved += bytes;
  lane.queue.push_back({number, lane.link->time(bytes), held});
  if (lane.queue.size() == 1 && !held) {
    begin_first(lane);
    set_speeds();
  }
  return number;
}

void LinkLanes::release(TierId from, TierId to, std::size_t transfer) {
  Lane& lane = lanes_[lane_of(from, to)];
  const auto it = std::find_if(lane.queue.begin(), lane.queue.end(),
                               [=](const Transfer& queued) { return queued.number == transfer; });
  check(it != lane.queue.end() && it->held, "a transfer that is released was held");
  it->held = false;
  if (it != lane.queue.begin()) return;
  begin_first(lane);
  set_speeds();
}

void LinkLanes::begin_first(Lane& lane) {
  lane.left = lane.queue.front().alone;
  intervals_[lane.queue.front().number].begin = now_;
}

void LinkLanes::end_first(Lane& lane) {
  const std::size_t number = lane.queue.front().number;
  intervals_[number].end = now_;
  done_[number] = true;
  lane.queue.pop_front();
  if (lane.busy()) begin_first(lane);
}

void LinkLanes::set_speeds() {
  kernel_speed_ = 1;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    if (!lane.busy()) continue;
    const bool both = lane.opposite != i && lanes_[lane.opposite].busy();
    lane.speed = (both ? lane.link->both_ways : 1) * (computing_ ? lane.link->while_computing : 1);
    kernel_speed_ *= 1 - lane.link->compute_loss;
  }
}

void LinkLanes::set_computing(bool computing) {
  if (computing == computing_) return;
  computing_ = computing;
  set_speeds();
}

Seconds LinkLanes::next_end() const {
  Seconds next{std::numeric_limits<double>::infinity()};
  for (const Lane& lane : lanes_) {
    if (lane.busy()) next = std::min(next, lane.left / lane.speed);
  }
  return next;
}

void LinkLanes::advance(Seconds time) {
  now_ += time;
  bool ended = false;
  for (Lane& lane : lanes_) {
    if (!lane.busy()) continue;
    // This is the same expression as in next_end, so that rounding cannot separate the two.
    if (lane.left / lane.speed <= time) {
      end_first(lane);
      ended = true;
    } else {
      lane.left -= time * lane.speed;
    }
  }
  if (ended) set_speeds();
}

std::vector<Traffic> LinkLanes::moved() const {
  std::vector<Traffic> all;
  for (const Lane& lane : lanes_) {
    if (lane.moved > Bytes{}) all.push_back({lane.link->from, lane.link->to, lane.moved});
  }
  return all;
}

}  // namespace terrace

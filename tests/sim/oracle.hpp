// SPDX-License-Identifier: Apache-2.0
// The dumb simulator: time goes on in small fixed ticks, and in each one everything under way gets a little
// further. Its ends are late by at most a tick for each thing that had to end before.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "terrace/simulate.hpp"

namespace terrace {

class TickingSimulator {
 public:
  TickingSimulator(const Graph& graph, const Machine& machine, const KernelClock& clock, double tick)
      : graph_(graph), machine_(machine), clock_(clock), tick_(tick), lanes_(machine.links.size()) {}

  /// When each instruction was done.
  std::vector<double> run(const std::vector<Instruction>& instructions) {
    ends_.assign(instructions.size(), 0);
    std::size_t next = 0;
    while (true) {
      while (next < instructions.size() && try_execute(instructions[next], next)) ++next;
      if (next == instructions.size() && all_idle()) return ends_;
      tick();
    }
  }
  double now() const { return now_; }

 private:
  struct Moving {
    std::size_t instruction;
    std::uint32_t ticket;
    double left;
  };

  bool try_execute(const Instruction& instruction, std::size_t place) {
    if (const auto* copy = std::get_if<Copy>(&instruction)) return begin(*copy, place);
    if (const auto* wait = std::get_if<Wait>(&instruction); wait != nullptr && !done_[wait->ticket])
      return false;
    if (const auto* run = std::get_if<Run>(&instruction); run != nullptr && !ran(*run)) return false;
    ends_[place] = now_;
    return true;
  }

  bool begin(const Copy& copy, std::size_t place) {
    Bytes bytes;
    for (const TensorId tensor : copy.tensors) bytes += graph_[tensor].bytes;
    const Link* link = machine_.link(copy.from, copy.to);
    lanes_[static_cast<std::size_t>(link - machine_.links.data())].push_back(
        {place, copy.ticket, link->time(bytes).count()});
    return true;
  }

  /// The kernel at hand is started the first time and done when nothing of it is left.
  bool ran(const Run& run) {
    if (!running_) kernel_left_ = clock_.time(run.kernel, run.variant, run.tiers).count();
    running_ = kernel_left_ > 0;
    return !running_;
  }

  bool busy(TierId from, TierId to) const {
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      if (machine_.links[i].from == from && machine_.links[i].to == to) return !lanes_[i].empty();
    }
    return false;
  }
  bool all_idle() const {
    for (const auto& lane : lanes_) {
      if (!lane.empty()) return false;
    }
    return true;
  }

  void tick() {
    double speed = 1;
    std::vector<double> shares(lanes_.size(), 0);
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      if (lanes_[i].empty()) continue;
      const Link& link = machine_.links[i];
      speed *= 1 - link.compute_loss;
      shares[i] = busy(link.to, link.from) ? link.both_ways : 1;
      if (running_) shares[i] *= link.while_computing;
    }
    now_ += tick_;
    if (running_) kernel_left_ -= tick_ * speed;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      if (!lanes_[i].empty()) move(lanes_[i], tick_ * shares[i]);
    }
  }

  void move(std::deque<Moving>& lane, double amount) {
    lane.front().left -= amount;
    if (lane.front().left > 0) return;
    done_[lane.front().ticket] = true;
    ends_[lane.front().instruction] = now_;
    lane.pop_front();
  }

  const Graph& graph_;
  const Machine& machine_;
  const KernelClock& clock_;
  double tick_;
  double now_ = 0, kernel_left_ = 0;
  bool running_ = false;
  std::vector<std::deque<Moving>> lanes_;
  std::map<std::uint32_t, bool> done_;
  std::vector<double> ends_;
};

}  // namespace terrace

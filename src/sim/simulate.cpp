// SPDX-License-Identifier: Apache-2.0
#include "terrace/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <unordered_map>

#include "base/check.hpp"
#include "sim/link_lanes.hpp"

namespace terrace {
namespace {

/// Tracks the bytes of regions by tier, and their peak.
class Occupancy {
 public:
  Occupancy(const Graph& graph, const Machine& machine)
      : graph_(graph), machine_(machine), live_(machine.tiers.size()), peak_(machine.tiers.size()) {}

  void add(TensorId tensor, TierId tier) {
    Bytes& live = live_[tier.index];
    live += region(tensor, tier);
    peak_[tier.index] = std::max(peak_[tier.index], live);
  }
  void remove(TensorId tensor, TierId tier) { live_[tier.index] -= region(tensor, tier); }
  std::vector<Bytes> peak() && { return std::move(peak_); }

 private:
  Bytes region(TensorId tensor, TierId tier) const {
    return round_up(graph_[tensor].bytes, machine_[tier].granularity);
  }
  const Graph& graph_;
  const Machine& machine_;
  std::vector<Bytes> live_, peak_;
};

/// Issues the instructions one after the other, each when the one before lets it, and keeps the lanes of the
/// engines beside those of the links.
class Simulation {
 public:
  Simulation(const Graph& graph, const Machine& machine, const KernelClock& clock)
      : graph_(graph),
        clock_(clock),
        links_(machine),
        occupancy_(graph, machine),
        engines_(machine.engine_count()) {}

  Timeline run(const Plan& plan) {
    for (const Alloc& region : plan.start) occupancy_.add(region.tensor, region.tier);
    Timeline timeline;
    timeline.instructions.resize(plan.instructions.size());
    timeline_ = &timeline;
    has_run_.resize(plan.instructions.size());
    for (position_ = 0; position_ < plan.instructions.size(); ++position_) {
      std::visit([this](const auto& one) { execute(one); }, plan.instructions[position_]);
    }
    while (is_busy()) pass_time();
    for (std::size_t i = 0; i < copies_.size(); ++i) timeline.instructions[copies_[i]] = links_.interval(i);
    timeline.step = links_.now();
    timeline.exposed = std::max(Seconds{0}, timeline.step - running_);
    timeline.moved = links_.moved();
    timeline.peak = std::move(occupancy_).peak();
    return timeline;
  }

 private:
  /// A kernel in the queue of its engine.
  struct QueuedRun {
    std::size_t instruction;
    Seconds time;
    const Run* run;
  };
  struct EngineLane {
    std::deque<QueuedRun> queue = {};
    bool running = false;  ///< the first of the queue
    Seconds left{0};       ///< of it, at full speed
  };
  struct HeldCopy {
    const Copy* copy;
    std::size_t transfer;
  };

  void at_once() { timeline_->instructions[position_] = {links_.now(), links_.now()}; }

  void execute(const Alloc& region) {
    occupancy_.add(region.tensor, region.tier);
    at_once();
  }

  void execute(const Free& region) {
    occupancy_.remove(region.tensor, region.tier);
    at_once();
  }

  void execute(const Copy& copy) {
    Bytes bytes;
    for (const TensorId tensor : copy.tensors) bytes += graph_[tensor].bytes;
    const bool ready = is_ready(copy.after);
    const std::size_t transfer =
        ready ? links_.start(copy.from, copy.to, bytes) : links_.hold(copy.from, copy.to, bytes);
    if (!ready) held_.push_back({&copy, transfer});
    copies_.push_back(position_);
    tickets_[copy.ticket] = {true, transfer};
  }

  void execute(const Wait& wait) {
    const Seconds begin = links_.now();
    while (!is_complete(wait.ticket)) pass_time();
    timeline_->instructions[position_] = {begin, links_.now()};
  }

  void execute(const Run& run) {
    const std::size_t place = position_;
    EngineLane& lane = engines_[run.engine.index];
    lane.queue.push_back({place, clock_.time(run.kernel, run.variant, run.tiers, run.engine), &run});
    if (run.ticket) tickets_[*run.ticket] = {false, place};
    begin_what_is_ready();
    if (run.ticket) return;
    while (!has_run_[place]) pass_time();
  }

  bool is_complete(std::uint32_t ticket) const {
    const auto found = tickets_.find(ticket);
    check(found != tickets_.end(), "a ticket is of something that was issued before");
    const Ticket& it = found->second;
    return it.is_copy ? links_.is_done(it.number) : has_run_[it.number];
  }
  bool is_ready(const std::vector<std::uint32_t>& after) const {
    return std::all_of(after.begin(), after.end(), [this](std::uint32_t one) { return is_complete(one); });
  }

  /// Starts what the end of something lets start. A kernel that takes no time ends at once.
  void begin_what_is_ready() {
    for (bool more = true; more;) {
      more = false;
      for (EngineLane& lane : engines_) {
        if (lane.running || lane.queue.empty() || !is_ready(lane.queue.front().run->after)) continue;
        begin_first(lane);
        more |= !lane.running;
      }
    }
    std::erase_if(held_, [this](const HeldCopy& held) {
      if (!is_ready(held.copy->after)) return false;
      links_.release(held.copy->from, held.copy->to, held.transfer);
      return true;
    });
  }

  void begin_first(EngineLane& lane) {
    lane.left = lane.queue.front().time;
    lane.running = true;
    if (active_++ == 0) computing_since_ = links_.now();
    timeline_->instructions[lane.queue.front().instruction].begin = links_.now();
    links_.set_computing(true);
    if (lane.left <= Seconds{0}) end_first(lane);
  }

  void end_first(EngineLane& lane) {
    const std::size_t place = lane.queue.front().instruction;
    timeline_->instructions[place].end = links_.now();
    has_run_[place] = true;
    lane.queue.pop_front();
    lane.running = false;
    if (--active_ > 0) return;
    running_ += links_.now() - computing_since_;
    links_.set_computing(false);
  }

  /// Lets time pass until something ends.
  void pass_time() {
    const double speed = links_.kernel_speed();
    Seconds time = links_.next_end();
    for (const EngineLane& lane : engines_) {
      if (lane.running) time = std::min(time, lane.left / speed);
    }
    check(std::isfinite(time.count()), "what has begun ends at some time");
    links_.advance(time);
    for (EngineLane& lane : engines_) {
      if (!lane.running) continue;
      // This is the same expression as above, so that rounding cannot separate the two.
      if (lane.left / speed <= time) {
        end_first(lane);
      } else {
        lane.left -= time * speed;
      }
    }
    begin_what_is_ready();
  }

  bool is_busy() const { return active_ > 0 || std::isfinite(links_.next_end().count()); }

  struct Ticket {
    bool is_copy = false;
    std::size_t number = 0;  ///< of the transfer, or of the instruction that runs a kernel
  };

  const Graph& graph_;
  const KernelClock& clock_;
  LinkLanes links_;
  Occupancy occupancy_;
  std::vector<EngineLane> engines_;
  std::vector<HeldCopy> held_;
  std::vector<std::size_t> copies_;  ///< instructions, by transfer
  std::unordered_map<std::uint32_t, Ticket> tickets_;
  std::vector<bool> has_run_;  ///< by instruction
  std::size_t position_ = 0;   ///< of the instruction that is issued
  Timeline* timeline_ = nullptr;
  std::size_t active_ = 0;  ///< engines that compute
  Seconds computing_since_{0}, running_{0};
};

}  // namespace

Timeline simulate(const Graph& graph, const Machine& machine, const KernelClock& clock, const Plan& plan) {
  return Simulation(graph, machine, clock).run(plan);
}

Timeline simulate(const Graph& graph, const Machine& machine, const Profile& profile, const Plan& plan) {
  return simulate(graph, machine, KernelClock(graph, machine, profile), plan);
}

}  // namespace terrace

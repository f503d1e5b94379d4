#include "terrace/simulate.hpp"

#include <algorithm>
#include <cmath>
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

/// Simulation is the kernels' lane. Each call executes one instruction and returns when it happened.
class Simulation {
 public:
  Simulation(const Graph& graph, const Machine& machine, const KernelClock& clock)
      : graph_(graph), clock_(clock), links_(machine), occupancy_(graph, machine) {}

  Timeline run(const Plan& plan) {
    for (const Alloc& region : plan.start) occupancy_.add(region.tensor, region.tier);
    Timeline timeline;
    timeline.instructions.reserve(plan.instructions.size());
    for (const Instruction& instruction : plan.instructions) {
      timeline.instructions.push_back(
          std::visit([this](const auto& one) { return execute(one); }, instruction));
    }
    links_.set_computing(false);
    links_.finish_all();
    set_transfers(plan, timeline);
    timeline.step = links_.now();
    timeline.exposed = std::max(Seconds{0}, timeline.step - running_);
    timeline.moved = links_.moved();
    timeline.peak = std::move(occupancy_).peak();
    return timeline;
  }

 private:
  Interval at_once() const { return {links_.now(), links_.now()}; }

  Interval execute(const Alloc& region) {
    occupancy_.add(region.tensor, region.tier);
    return at_once();
  }

  Interval execute(const Free& region) {
    occupancy_.remove(region.tensor, region.tier);
    return at_once();
  }

  Interval execute(const Copy& copy) {
    Bytes bytes;
    for (const TensorId tensor : copy.tensors) bytes += graph_[tensor].bytes;
    transfers_[copy.ticket] = links_.start(copy.from, copy.to, bytes);
    return {};  // known only when the transfer is done
  }

  Interval execute(const Wait& wait) {
    const Seconds begin = links_.now();
    links_.set_computing(false);
    const auto transfer = transfers_.find(wait.ticket);
    check(transfer != transfers_.end(), "a wait is for a transfer that was started");
    links_.finish(transfer->second);
    return {begin, links_.now()};
  }

  Interval execute(const Run& run) {
    const Seconds begin = links_.now();
    links_.set_computing(true);
    Seconds left = clock_.time(run.kernel, run.variant, run.tiers);
    while (left > Seconds{0}) {
      const double speed = links_.kernel_speed();
      const Seconds end = left / speed, event = links_.next_end();
      check(std::isfinite(std::min(end, event).count()), "a kernel takes a finite time");
      links_.advance(std::min(end, event));
      left = end <= event ? Seconds{0} : left - event * speed;
    }
    running_ += links_.now() - begin;
    return {begin, links_.now()};
  }

  void set_transfers(const Plan& plan, Timeline& timeline) const {
    std::size_t transfer = 0;
    for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
      if (!std::holds_alternative<Copy>(plan.instructions[i])) continue;
      timeline.instructions[i] = links_.interval(transfer++);
    }
  }

  const Graph& graph_;
  const KernelClock& clock_;
  LinkLanes links_;
  Occupancy occupancy_;
  std::unordered_map<std::uint32_t, std::size_t> transfers_;  ///< by ticket
  Seconds running_{0};
};

}  // namespace

Timeline simulate(const Graph& graph, const Machine& machine, const KernelClock& clock, const Plan& plan) {
  return Simulation(graph, machine, clock).run(plan);
}

Timeline simulate(const Graph& graph, const Machine& machine, const Profile& profile, const Plan& plan) {
  return simulate(graph, machine, KernelClock(graph, machine, profile), plan);
}

}  // namespace terrace

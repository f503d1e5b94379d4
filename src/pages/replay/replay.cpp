// SPDX-License-Identifier: Apache-2.0
#include "pages/replay/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace terrace::pages {
namespace {

constexpr double kLine = 64;

// 002 section 8.6: copying is 40% of what move_pages() takes, and without it and without allocation on the
// critical path a region moves 4.37 times as fast. One thread copies.
constexpr double kCopyShare = 0.4;
constexpr double kAsynchronousGain = 4.37;
constexpr double kBytesPerSecondOfACopier = 4e9;

double uniform(SplitMix& random) { return static_cast<double>(random.next() >> 11) * 0x1p-53; }

}  // namespace

BlockPlacement::BlockPlacement(const Machine& machine, const TraceShape& shape, double capacity_scale) {
  for (const MachineTier& tier : machine.tiers) {
    const double blocks =
        static_cast<double>(tier.capacity.count) * capacity_scale / static_cast<double>(shape.block.count);
    capacity_.push_back(static_cast<std::uint64_t>(blocks));
  }
  room_ = capacity_;
  tier_.resize(shape.blocks);
  unsigned to = 0;
  for (std::uint32_t block = 0; block < shape.blocks; ++block) {
    while (to + 1 < room_.size() && room_[to] == 0) ++to;
    tier_[block] = static_cast<std::uint8_t>(to);
    room_[to] -= std::min<std::uint64_t>(room_[to], 1);
  }
}

void BlockPlacement::move(std::uint32_t block, unsigned to) {
  ++room_[tier_[block]];
  --room_[to];
  tier_[block] = static_cast<std::uint8_t>(to);
}

ReplayWindow::ReplayWindow(const Machine& machine, const ReplayOptions& options, Bytes block,
                           std::span<const Accesses> accesses, BlockPlacement& placement, SplitMix& random)
    : machine_(machine),
      options_(options),
      block_(block),
      accesses_(accesses),
      placement_(placement),
      random_(random),
      copied_(machine.tiers.size()) {}

bool ReplayWindow::referenced(std::uint32_t block, double part) {
  looking_ += kSecondsOfScan;
  // Accesses are spread evenly over the pages of a block and over the window.
  const double expected = accesses_[block].all() * part * static_cast<double>(options_.page.count) /
                          static_cast<double>(block_.count);
  return uniform(random_) < 1 - std::exp(-expected);
}

double ReplayWindow::hint_faults(std::uint32_t block) {
  const double pages = static_cast<double>(block_.count) / static_cast<double>(options_.page.count);
  const double touched = 1 - std::exp(-accesses_[block].all() / pages);
  looking_ += touched * pages * kSecondsOfFault;
  return touched;
}

unsigned ReplayWindow::protection_faults(std::uint32_t block, unsigned most) {
  unsigned count = 0;
  for (; count < most; ++count) {
    looking_ -= kSecondsOfScan;
    if (!referenced(block, 1.0 / most)) break;
    looking_ += kSecondsOfFault;
  }
  return count;
}

double ReplayWindow::counted(std::uint32_t block, double period) {
  const double expected = accesses_[block].all() / period;
  // Poisson's law by its normal approximation, or one draw where hardly anything is expected.
  double count = expected < 4 ? (uniform(random_) < 1 - std::exp(-expected) ? std::max(1.0, expected) : 0)
                              : std::max(0.0, expected + std::sqrt(expected) * (uniform(random_) * 4 - 2));
  count = std::floor(count);
  looking_ += count * kSecondsOfCounterSample;
  return count;
}

bool ReplayWindow::move(std::uint32_t block, unsigned to, Copying copying) {
  const unsigned from = placement_.tier(block);
  if (from == to || placement_.room(to) == 0) return false;
  const double bytes = static_cast<double>(block_.count);
  const double rate =
      std::min({machine_.tiers[from].read.value, machine_.tiers[to].write.value, kBytesPerSecondOfACopier});
  const double whole = bytes / rate / kCopyShare;
  const bool written = accesses_[block].writes * whole / options_.window_seconds >= 1;
  switch (copying) {
    case Copying::synchronous:
      waiting_ += whole;
      break;
    case Copying::adaptive:
      waiting_ += written ? whole : whole / kAsynchronousGain;
      break;
    case Copying::hidden:
      waiting_ += written ? bytes / rate : 0;
      break;
  }
  copied_[from] += bytes;
  copied_[to] += bytes;
  moved_ += block_.count;
  placement_.move(block, to);
  return true;
}

double program_seconds(const Machine& machine, const ReplayOptions& options,
                       std::span<const Accesses> by_tier, std::span<const double> copied_bytes) {
  double latency = 0, busiest = 0;
  for (std::size_t i = 0; i < by_tier.size(); ++i) {
    const MachineTier& tier = machine.tiers[i];
    latency += by_tier[i].all() * (tier.latency.count() + options.compute_ns * 1e-9) / options.threads;
    const double lines = kLine * (by_tier[i].reads / tier.read.value + by_tier[i].writes / tier.write.value);
    busiest = std::max(busiest, lines + copied_bytes[i] / tier.read.value);
  }
  return std::max(latency, busiest);
}

namespace {

/// Sums in doubles: a tier serves more accesses than a float counts.
class Replay {
 public:
  Replay(const AccessTrace& trace, const Machine& machine, const ReplayOptions& options, ReplayPolicy& policy)
      : trace_(trace),
        machine_(machine),
        options_(options),
        policy_(policy),
        placement_(machine, trace.shape(), options.capacity_scale),
        accesses_(trace.shape().blocks),
        random_(options.seed),
        copied_(machine.tiers.size()) {
    result_.accesses.resize(machine.tiers.size());
  }

  ReplayResult run() {
    for (std::uint32_t i = 0; i < trace_.shape().windows; ++i) {
      trace_.window(i, accesses_);
      const double program = run_program();
      ReplayWindow window(machine_, options_, trace_.shape().block, accesses_, placement_, random_);
      policy_.decide(window);
      copied_ = window.copied_bytes();
      result_.program_seconds += program;
      result_.looking_seconds += window.looking_seconds();
      result_.migrating_seconds += window.waiting_seconds();
      result_.moved_bytes += window.moved_bytes();
      result_.most_looking =
          std::max(result_.most_looking, window.looking_seconds() / options_.window_seconds);
    }
    result_.seconds = result_.program_seconds + result_.looking_seconds + result_.migrating_seconds;
    judge();
    return result_;
  }

 private:
  double run_program() {
    const double hardware = policy_.hardware_seconds(machine_, options_, accesses_, result_.accesses);
    if (hardware >= 0) return hardware;
    std::vector<std::array<double, 2>> sums(machine_.tiers.size());
    for (std::uint32_t block = 0; block < placement_.blocks(); ++block) {
      sums[placement_.tier(block)][0] += accesses_[block].reads;
      sums[placement_.tier(block)][1] += accesses_[block].writes;
    }
    std::vector<Accesses> by_tier;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      by_tier.push_back({static_cast<float>(sums[i][0]), static_cast<float>(sums[i][1])});
      result_.accesses[i] += sums[i][0] + sums[i][1];
    }
    return program_seconds(machine_, options_, by_tier, copied_);
  }

  void judge() {
    const std::vector<bool>* const hot = trace_.hot_set();
    if (hot == nullptr) return;
    double is = 0, said = 0, right = 0;
    for (std::uint32_t block = 0; block < placement_.blocks(); ++block) {
      const bool says = policy_.takes_for_hot(block);
      is += (*hot)[block];
      said += says;
      right += says && (*hot)[block];
    }
    if (said == 0) return;
    result_.recall = right / is;
    result_.precision = right / said;
  }

  const AccessTrace& trace_;
  const Machine& machine_;
  const ReplayOptions& options_;
  ReplayPolicy& policy_;
  BlockPlacement placement_;
  std::vector<Accesses> accesses_;
  SplitMix random_;
  std::vector<double> copied_;
  ReplayResult result_;
};

}  // namespace

Result<ReplayResult> replay(const AccessTrace& trace, const Machine& machine, std::string_view policy,
                            const ReplayOptions& options) {
  const Bytes block = trace.shape().block, page = options.page;
  if (page.count == 0 || (page > block ? page.count % block.count : block.count % page.count) != 0)
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("pages of {} and the trace's blocks of {} do not divide each other: choose 4KiB, "
                    "2MiB or 1GiB",
                    readable(page), readable(block))};
  if (page > block) return replay(*in_larger_blocks(trace, page), machine, policy, options);
  double capacity = 0;
  for (const MachineTier& tier : machine.tiers) capacity += static_cast<double>(tier.capacity.count);
  if (capacity * options.capacity_scale < static_cast<double>(trace.shape().footprint().count) * 1.01)
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("{} holds {}, less than the {} of {}: scale its capacities up with --scale", machine.name,
                    readable(Bytes{static_cast<std::uint64_t>(capacity * options.capacity_scale)}),
                    readable(trace.shape().footprint()), trace.shape().name)};
  auto made = make_replay_policy(policy, trace.shape(), machine, options);
  if (!made) return made.error();
  ReplayResult result = Replay(trace, machine, options, **made).run();
  result.policy = policy;
  return result;
}

}  // namespace terrace::pages

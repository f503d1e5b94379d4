// SPDX-License-Identifier: Apache-2.0
// The systems that 002 section 8.8 compares, as far as the chapter and their papers describe what they look
// at and what they move where. All start with first touch and may promote as much in a window as HM-Keeper.
#include <algorithm>
#include <cmath>

#include "base/similar.hpp"
#include "pages/keeper/placement.hpp"
#include "pages/keeper/stretches.hpp"
#include "pages/replay/replay.hpp"

namespace terrace::pages {
namespace {

constexpr std::uint64_t kHintArea = 256 << 20;  // what a scan of AutoNUMA's kind unmaps at once

std::uint32_t promoted_blocks(const ReplayWindow& window) {
  return static_cast<std::uint32_t>(
      std::max<std::uint64_t>(window.options().moved_bytes / window.block().count, 1));
}

/// Nothing moves after its first touch.
class FirstTouchReplay final : public ReplayPolicy {
 public:
  void decide(ReplayWindow&) override {}
};

/// Memory Mode: the DRAM of each socket is a direct-mapped cache of lines before its persistent memory.
/// Blocks that share a place in the cache drive each other out as often as both are used.
class MemoryMode final : public ReplayPolicy {
 public:
  MemoryMode(const TraceShape& shape, const Machine& machine, double scale) {
    const std::size_t sockets = machine.tiers.size() / 2;
    for (std::size_t i = 0; i < sockets; ++i) {
      const double bytes = static_cast<double>(machine.tiers[i].capacity.count) * scale;
      places_.push_back(std::max<std::uint64_t>(
          static_cast<std::uint64_t>(bytes / static_cast<double>(shape.block.count)), 1));
    }
    const double bytes = static_cast<double>(machine.tiers[sockets].capacity.count) * scale;
    first_socket_blocks_ = static_cast<std::uint32_t>(bytes / static_cast<double>(shape.block.count));
  }
  void decide(ReplayWindow&) override {}

  double hardware_seconds(const Machine& machine, const ReplayOptions& options,
                          std::span<const Accesses> accesses, std::vector<double>& by_tier) override {
    const std::size_t sockets = places_.size();
    std::vector<Accesses> served(machine.tiers.size());
    std::vector<double> copied(machine.tiers.size());
    double extra = 0;
    for (std::size_t socket = 0; socket < sockets; ++socket) {
      const std::uint32_t first =
          socket == 0
              ? 0
              : std::min<std::uint32_t>(first_socket_blocks_, static_cast<std::uint32_t>(accesses.size()));
      const auto end = static_cast<std::uint32_t>(
          socket == 0 ? std::min<std::size_t>(first_socket_blocks_, accesses.size()) : accesses.size());
      const std::uint64_t places = places_[socket];
      std::vector<double> sum(places), squares(places);
      for (std::uint32_t block = first; block < end; ++block) {
        const double all = accesses[block].all();
        sum[block % places] += all;
        squares[block % places] += all * all;
      }
      const std::size_t fast = socket, slow = sockets + socket;
      for (std::uint32_t block = first; block < end; ++block) {
        const double whole = sum[block % places];
        if (whole == 0) continue;
        // The line is in the cache if the last access to its place was to the same block.
        const double hits = squares[block % places] / (whole * whole);
        const double all = accesses[block].all(), misses = all * (1 - hits);
        served[fast].reads += static_cast<float>(all - misses);
        served[slow].reads += static_cast<float>(misses);
        // A miss looks in DRAM first, and writes back what was written; Optane writes 256 bytes for 64.
        extra += misses * machine.tiers[fast].latency.count() / options.threads;
        const double dirty = misses * accesses[block].writes / std::max(all, 1.0);
        copied[slow] += dirty * 256 * machine.tiers[slow].read.value / machine.tiers[slow].write.value;
      }
    }
    for (std::size_t i = 0; i < served.size(); ++i) by_tier[i] += served[i].all();
    return program_seconds(machine, options, served, copied) + extra;
  }

 private:
  std::vector<std::uint64_t> places_;
  std::uint32_t first_socket_blocks_ = 0;
};

/// What the hint-fault systems share: areas of 256 MB drawn at random, as many as the overhead affords, and a
/// list of touched blocks of theirs, the hottest first.
class HintFaults {
 public:
  struct Found {
    std::uint32_t block = 0;
    double touched = 0;
  };
  std::vector<Found> look(ReplayWindow& window) const {
    std::vector<Found> all;
    const auto area = static_cast<std::uint32_t>(std::max<std::uint64_t>(
        std::min<std::uint64_t>(kHintArea / window.block().count, window.blocks()), 1));
    const double most = static_cast<double>(kHintArea / 4096) * kSecondsOfFault;
    do {
      const auto first = static_cast<std::uint32_t>(window.random().below(window.blocks() - area + 1));
      for (std::uint32_t block = first; block < first + area; ++block)
        all.push_back({block, window.hint_faults(block)});
    } while (window.looking_seconds() + most <= window.affordable_seconds());
    std::sort(all.begin(), all.end(), [](const Found& a, const Found& b) {
      return a.touched != b.touched ? a.touched > b.touched : a.block < b.block;
    });
    return all;
  }
};

/// AutoNUMA moves touched pages to the program's socket, where there is room: from remote memory to local
/// memory of the same kind, and never between the kinds.
class AutoNuma final : public ReplayPolicy {
 public:
  void decide(ReplayWindow& window) override {
    std::uint32_t left = promoted_blocks(window);
    for (const auto& found : faults_.look(window)) {
      const unsigned tier = window.placement().tier(found.block);
      if (left == 0) return;
      if (tier % 2 == 1 && found.touched > 0.5)
        left -= window.move(found.block, tier - 1, Copying::synchronous);
    }
  }

 private:
  HintFaults faults_;
};

/// Counts of what was found touched, halved with every window, and who is coldest in a tier.
class Counts {
 public:
  explicit Counts(std::uint32_t blocks) : value_(blocks) {}
  void age() {
    for (float& value : value_) value /= 2;
  }
  void add(std::uint32_t block, double amount) { value_[block] += static_cast<float>(amount); }
  float operator[](std::uint32_t block) const { return value_[block]; }

  /// Frees a place in a tier by moving somebody colder than `than` down, looking at blocks in turn.
  bool make_room(ReplayWindow& window, unsigned tier, unsigned to, float than, Copying copying) {
    if (window.placement().room(tier) > 0) return true;
    for (std::uint32_t tries = 0; tries < std::min<std::uint32_t>(window.blocks(), 4096); ++tries) {
      hand_ = (hand_ + 1) % window.blocks();
      if (window.placement().tier(hand_) == tier && value_[hand_] < than)
        return window.move(hand_, to, copying);
    }
    return false;
  }

 private:
  std::vector<float> value_;
  std::uint32_t hand_ = 0;
};

/// The next lower tier with room, or `tier` itself.
unsigned next_with_room(const BlockPlacement& placement, unsigned tier) {
  for (unsigned to = tier + 1; to < placement.tiers(); ++to) {
    if (placement.room(to) > 0) return to;
  }
  return tier;
}

/// What Memory-tiering and AutoTiering share: blocks that hint faults found touched, the hottest first, are
/// offered for promotion.
class PromotesTouched : public ReplayPolicy {
 public:
  explicit PromotesTouched(std::uint32_t blocks) : counts_(blocks) {}
  void decide(ReplayWindow& window) final {
    counts_.age();
    const auto found = faults_.look(window);
    for (const auto& each : found) counts_.add(each.block, each.touched);
    std::uint32_t left = promoted_blocks(window);
    for (const auto& each : found) {
      if (left == 0 || each.touched < 0.5) return;
      left -= promote(window, each.block);
    }
  }

 protected:
  /// Moves the block up if somebody colder makes room for it. Returns whether it did.
  virtual bool promote(ReplayWindow& window, std::uint32_t block) = 0;
  Counts counts_;

 private:
  HintFaults faults_;
};

/// Intel's Memory-tiering: promotion one tier at a time, demotion of the least recently used.
class MemoryTiering final : public PromotesTouched {
  using PromotesTouched::PromotesTouched;
  bool promote(ReplayWindow& window, std::uint32_t block) override {
    const unsigned tier = window.placement().tier(block);
    if (tier == 0) return false;
    const unsigned down = next_with_room(window.placement(), tier - 1);
    return down != tier - 1 &&
           counts_.make_room(window, tier - 1, down, counts_[block], Copying::synchronous) &&
           window.move(block, tier - 1, Copying::synchronous);
  }
};

/// AutoTiering with opportunistic promotion and background demotion: touched pages go to the best tier with
/// room; a page of the fastest tier that was not seen touched of late makes it.
class AutoTiering final : public PromotesTouched {
  using PromotesTouched::PromotesTouched;
  bool promote(ReplayWindow& window, std::uint32_t block) override {
    const unsigned tier = window.placement().tier(block);
    for (unsigned to = 0; to < tier; ++to) {
      const unsigned down = next_with_room(window.placement(), to);
      if (down != to && !counts_.make_room(window, to, down, counts_[block] / 2, Copying::synchronous))
        continue;
      if (window.move(block, to, Copying::synchronous)) return true;
    }
    return false;
  }
};

/// Intel's Memory-optimizer: access bits of blocks drawn at random, migration between the memories of one
/// socket only.
class MemoryOptimizer final : public ReplayPolicy {
 public:
  explicit MemoryOptimizer(std::uint32_t blocks) : counts_(blocks) {}
  void decide(ReplayWindow& window) override {
    constexpr unsigned kScans = 3;
    counts_.age();
    const unsigned sockets = std::max(static_cast<unsigned>(window.placement().tiers() / 2), 1U);
    std::vector<std::uint32_t> hot;
    while (window.looking_seconds() + kScans * kSecondsOfScan <= window.affordable_seconds()) {
      const auto block = static_cast<std::uint32_t>(window.random().below(window.blocks()));
      unsigned seen = 0;
      for (unsigned scan = 0; scan < kScans; ++scan) seen += window.referenced(block, 1.0 / kScans);
      counts_.add(block, seen);
      if (seen == kScans) hot.push_back(block);
    }
    std::uint32_t left = promoted_blocks(window);
    for (const std::uint32_t block : hot) {
      const unsigned tier = window.placement().tier(block);
      if (left == 0) return;
      if (tier < sockets) continue;
      if (!counts_.make_room(window, tier - sockets, tier, counts_[block] / 2, Copying::synchronous))
        continue;
      left -= window.move(block, tier - sockets, Copying::synchronous);
    }
  }

 private:
  Counts counts_;
};

/// HeMem counts accesses with the processor's sampling, takes a block with eight of them for hot, halves all
/// counts when one gets to eighteen, and knows two tiers: the fastest and the rest.
class HeMem final : public ReplayPolicy {
 public:
  explicit HeMem(std::uint32_t blocks) : counts_(blocks), seen_(blocks) {}
  void decide(ReplayWindow& window) override {
    constexpr double kHot = 8, kCool = 18, kPeriod = 5000;
    bool cool = false;
    for (std::uint32_t block = 0; block < window.blocks(); ++block) {
      seen_[block] = window.counted(block, kPeriod);
      counts_.add(block, seen_[block]);
      cool |= counts_[block] >= kCool;
    }
    std::uint32_t left = promoted_blocks(window);
    for (std::uint32_t i = 0, start = static_cast<std::uint32_t>(window.random().below(window.blocks()));
         i < window.blocks() && left > 0; ++i) {
      const std::uint32_t block = (start + i) % window.blocks();
      const unsigned tier = window.placement().tier(block);
      if (tier == 0 || counts_[block] < kHot) continue;
      const unsigned down = next_with_room(window.placement(), 0);
      if (!counts_.make_room(window, 0, down, kHot, Copying::hidden)) break;
      left -= window.move(block, 0, Copying::hidden);
    }
    if (cool) counts_.age();
  }
  bool takes_for_hot(std::uint32_t block) const override { return counts_[block] >= 8; }

 private:
  Counts counts_;
  std::vector<double> seen_;
};

/// What of HM-Keeper is on. The chapter switches each off, or replaces it (Fig. 8.11 and 8.13).
struct KeeperParts {
  enum class Profiler { stretches, fixed_stretches, random_samples, unbounded, hint_faults, thermostat };
  Profiler profiler = Profiler::stretches;
  bool straight = true;  ///< promotion goes to the fastest tier at once
};

class KeeperReplay final : public ReplayPolicy {
 public:
  KeeperReplay(const TraceShape& shape, const Machine& machine, const ReplayOptions& options,
               KeeperParts parts)
      : parts_(parts),
        stretches_(profiling(options, parts)),
        pages_of_block_(shape.block.count / 4096),
        heat_(shape.blocks) {
    stretches_.keep_size(parts.profiler != KeeperParts::Profiler::stretches);
    stretches_.add(0, shape.blocks * pages_of_block_, 0);
    limits_.capacity.resize(machine.tiers.size());
    limits_.promoted = std::max<std::uint64_t>(options.moved_bytes / shape.block.count, 1);
  }

  void decide(ReplayWindow& window) override {
    using Profiler = KeeperParts::Profiler;
    switch (parts_.profiler) {
      case Profiler::stretches:
      case Profiler::fixed_stretches:
        profile_stretches(window);
        break;
      case Profiler::random_samples:
      case Profiler::unbounded:
        profile_blocks(window);
        break;
      case Profiler::hint_faults:
        for (const auto& found : faults_.look(window)) renew(found.block, 3 * found.touched);
        break;
      case Profiler::thermostat:
        profile_by_protection(window);
        break;
    }
    migrate(window);
  }
  bool takes_for_hot(std::uint32_t block) const override { return heat_[block] > 1.5; }

 private:
  static constexpr unsigned kScans = 3;

  static ProfilingOptions profiling(const ReplayOptions& options, const KeeperParts&) {
    ProfilingOptions result;
    result.interval_seconds = options.window_seconds;
    result.overhead = options.overhead;
    result.seconds_of_a_scan = kSecondsOfScan;
    result.scans = kScans;
    result.seed = options.seed;
    return result;
  }
  void renew(std::uint32_t block, double hotness) {
    heat_[block] = static_cast<float>(0.5 * hotness + 0.5 * heat_[block]);  // 002 eq. 8.2
  }

  void profile_stretches(ReplayWindow& window) {
    stretches_.begin_interval();
    for (unsigned scan = 0; scan < kScans; ++scan) {
      stretches_.scan([&](std::uint64_t page) {
        return window.referenced(static_cast<std::uint32_t>(page / pages_of_block_), 1.0 / kScans);
      });
    }
    stretches_.end_interval();
    for (const Stretch& stretch : stretches_.all()) {
      for (std::uint64_t block = stretch.first / pages_of_block_; block * pages_of_block_ < stretch.end();
           ++block)
        heat_[block] = static_cast<float>(stretch.weighted);
    }
  }
  /// Samples anywhere; without a bound there is one in every block.
  void profile_blocks(ReplayWindow& window) {
    const bool all = parts_.profiler == KeeperParts::Profiler::unbounded;
    const std::size_t samples =
        all ? window.blocks() * 4 : affordable_samples(profiling(window.options(), parts_));
    for (std::size_t i = 0; i < samples; ++i) {
      const auto block =
          static_cast<std::uint32_t>(all ? i % window.blocks() : window.random().below(window.blocks()));
      unsigned seen = 0;
      for (unsigned scan = 0; scan < kScans; ++scan) seen += window.referenced(block, 1.0 / kScans);
      renew(block, seen);
    }
  }
  /// One page of each 2 MiB, at whatever it costs.
  void profile_by_protection(ReplayWindow& window) {
    for (std::uint32_t block = 0; block < window.blocks(); ++block)
      renew(block, window.protection_faults(block, kScans));
  }

  void migrate(ReplayWindow& window) {
    const BlockPlacement& placement = window.placement();
    std::vector<PlacedStretch> placed(window.blocks());
    for (std::uint32_t block = 0; block < window.blocks(); ++block)
      placed[block] = {heat_[block], 1, placement.tier(block)};
    for (unsigned tier = 0; tier < placement.tiers(); ++tier)
      limits_.capacity[tier] = placement.capacity(tier);
    for (const Migration& move : place(placed, limits_)) {
      const unsigned to = !parts_.straight && move.to < move.from ? move.from - 1 : move.to;
      window.move(static_cast<std::uint32_t>(move.stretch), to, Copying::adaptive);
    }
  }

  KeeperParts parts_;
  Stretches stretches_;
  HintFaults faults_;
  std::uint64_t pages_of_block_;
  PlacementLimits limits_;
  std::vector<float> heat_;
};

}  // namespace

const std::vector<PolicyInfo>& replay_policies() {
  static const std::vector<PolicyInfo> all{
      {"keeper", "HM-Keeper (002 chapter 8)", 0},
      {"first-touch", "no migration", 20},
      {"memory-mode", "DRAM as a cache in hardware", 24},
      {"autonuma", "AutoNUMA: between sockets", 25},
      {"memory-tiering", "Intel's extension of AutoNUMA: tier by tier", 22},
      {"autotiering", "AutoTiering: opportunistic", 20},
      {"memory-optimizer", "Intel's: within a socket", 32},
      {"hemem", "HeMem: counters, two tiers", 24},
      {"keeper-fixed", "keeper, stretches neither merged nor split", 22},
      {"keeper-random", "keeper, samples anywhere", 21},
      {"keeper-unbounded", "keeper, no bound on profiling", 0},
      {"keeper-hints", "keeper with Memory-tiering's profiling", 17},
      {"keeper-thermostat", "keeper with Thermostat's profiling", 7},
      {"keeper-stepwise", "keeper, promotion tier by tier", 20},
  };
  return all;
}

Result<std::unique_ptr<ReplayPolicy>> make_replay_policy(std::string_view name, const TraceShape& shape,
                                                         const Machine& machine,
                                                         const ReplayOptions& options) {
  using Made = std::unique_ptr<ReplayPolicy>;
  using Profiler = KeeperParts::Profiler;
  const auto keeper = [&](KeeperParts parts) {
    return Made(std::make_unique<KeeperReplay>(shape, machine, options, parts));
  };
  if (name == "keeper") return keeper({});
  if (name == "keeper-fixed") return keeper({Profiler::fixed_stretches, true});
  if (name == "keeper-random") return keeper({Profiler::random_samples, true});
  if (name == "keeper-unbounded") return keeper({Profiler::unbounded, true});
  if (name == "keeper-hints") return keeper({Profiler::hint_faults, true});
  if (name == "keeper-thermostat") return keeper({Profiler::thermostat, true});
  if (name == "keeper-stepwise") return keeper({Profiler::stretches, false});
  if (name == "first-touch") return Made(std::make_unique<FirstTouchReplay>());
  if (name == "memory-mode") {
    if (machine.tiers.size() % 2 != 0)
      return Error{ErrorCode::invalid_argument,
                   "memory-mode needs a fast and a slow tier on each socket: choose another machine"};
    return Made(std::make_unique<MemoryMode>(shape, machine, options.capacity_scale));
  }
  if (name == "autonuma") return Made(std::make_unique<AutoNuma>());
  if (name == "memory-tiering") return Made(std::make_unique<MemoryTiering>(shape.blocks));
  if (name == "autotiering") return Made(std::make_unique<AutoTiering>(shape.blocks));
  if (name == "memory-optimizer") return Made(std::make_unique<MemoryOptimizer>(shape.blocks));
  if (name == "hemem") return Made(std::make_unique<HeMem>(shape.blocks));
  std::vector<std::string_view> names;
  for (const PolicyInfo& info : replay_policies()) names.push_back(info.name);
  return Error{ErrorCode::invalid_argument,
               "there is no policy '" + std::string(name) + "': choose " + enumerated(names, "or")};
}

}  // namespace terrace::pages

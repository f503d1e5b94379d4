// SPDX-License-Identifier: Apache-2.0
// A replay runs an access trace on a described machine under a policy of pages, without any memory: what
// HM-Keeper and the systems it was compared with would do there (002 section 8.8).
//
// Policies see what their kind of profiling shows and nothing else, and pay for looking: access bits
// (HM-Keeper, Memory-optimizer), hint faults (AutoNUMA, Memory-tiering, AutoTiering), counters (HeMem). The
// time of a window is the program's own (computing, and waiting for each tier's latency, or for its bandwidth
// where that takes longer), what looking takes, and the part of migrations that the program waits for.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "pages/replay/trace.hpp"
#include "terrace/machine.hpp"

namespace terrace::pages {

struct ReplayOptions {
  unsigned threads = 8;                   ///< of the program, as in 002 section 8.8.1
  double compute_ns = 150;                ///< between two accesses of a thread: an assumption
  double window_seconds = 10;             ///< what policies take for the length of a window
  double overhead = 0.05;                 ///< the share of it that profiling may take
  std::uint64_t moved_bytes = 200 << 20;  ///< promoted in a window at most (002 section 8.5.1)
  double capacity_scale = 1;              ///< multiplies the capacity of every tier
  Bytes page{4096};  ///< of the program's memory: has one access bit, and moves as a whole (002 Fig. 8.9)
  std::uint64_t seed = 1;
};

// What looking costs. 002 section 8.4: access bits of 1.5 TB in 2 MiB pages take more than a second; a hint
// fault and a protection fault are a page fault each.
inline constexpr double kSecondsOfScan = 1.3e-6;
inline constexpr double kSecondsOfFault = 2e-6;
inline constexpr double kSecondsOfCounterSample = 0.5e-6;

/// Where blocks are.
class BlockPlacement {
 public:
  /// Blocks are placed as they are touched first: in the fastest tier with room.
  BlockPlacement(const Machine& machine, const TraceShape& shape, double capacity_scale);

  std::size_t tiers() const { return room_.size(); }
  unsigned tier(std::uint32_t block) const { return tier_[block]; }
  std::uint64_t room(unsigned tier) const { return room_[tier]; }
  std::uint64_t capacity(unsigned tier) const { return capacity_[tier]; }
  std::uint32_t blocks() const { return static_cast<std::uint32_t>(tier_.size()); }
  /// pre: there is room
  void move(std::uint32_t block, unsigned to);

 private:
  std::vector<std::uint8_t> tier_;
  std::vector<std::uint64_t> room_, capacity_;  // in blocks
};

/// How a block's migration is paid for.
enum class Copying {
  synchronous,  ///< move_pages() of Linux: the program waits for all of it
  adaptive,     ///< HM-Keeper's: asynchronous unless the block is written meanwhile (002 section 8.6)
  hidden,       ///< copied by an engine while writers wait (HeMem)
};

/// What a policy may do in a window, and what it has cost so far.
class ReplayWindow {
 public:
  ReplayWindow(const Machine& machine, const ReplayOptions& options, Bytes block,
               std::span<const Accesses> accesses, BlockPlacement& placement, SplitMix& random);

  std::uint32_t blocks() const { return placement_.blocks(); }
  const BlockPlacement& placement() const { return placement_; }
  const ReplayOptions& options() const { return options_; }
  Bytes block() const { return block_; }
  SplitMix& random() { return random_; }
  double affordable_seconds() const { return options_.window_seconds * options_.overhead; }

  /// Looks at the access bit of one page of a block, which was cleared a part of the window before.
  bool referenced(std::uint32_t block, double part);
  /// Unmaps all pages of a block and counts the faults that follow. Returns the share of pages that were
  /// touched.
  double hint_faults(std::uint32_t block);
  /// Protects one page of a block and counts its faults, up to `most`.
  unsigned protection_faults(std::uint32_t block, unsigned most);
  /// How many of every `period` accesses to the block a counter shows.
  double counted(std::uint32_t block, double period);

  /// Moves a block and charges for it. Returns false where the tier has no room.
  bool move(std::uint32_t block, unsigned to, Copying copying);

  double looking_seconds() const { return looking_; }
  double waiting_seconds() const { return waiting_; }  ///< for migrations
  std::uint64_t moved_bytes() const { return moved_; }
  const std::vector<double>& copied_bytes() const { return copied_; }  ///< by tier, read and written

 private:
  const Machine& machine_;
  const ReplayOptions& options_;
  Bytes block_;
  std::span<const Accesses> accesses_;
  BlockPlacement& placement_;
  SplitMix& random_;
  double looking_ = 0, waiting_ = 0;
  std::uint64_t moved_ = 0;
  std::vector<double> copied_;
};

class ReplayPolicy {
 public:
  virtual ~ReplayPolicy() = default;
  /// A window has passed.
  virtual void decide(ReplayWindow& window) = 0;
  /// Where hardware decides for each access, the time that the accesses of a window take; less than 0 where
  /// blocks are where the placement says.
  virtual double hardware_seconds(const Machine&, const ReplayOptions&, std::span<const Accesses>,
                                  std::vector<double>& accesses_by_tier) {
    (void)accesses_by_tier;
    return -1;
  }
  /// Whether the policy takes a block for hot; nothing where it does not say.
  virtual bool takes_for_hot(std::uint32_t) const { return false; }
};

struct PolicyInfo {
  std::string_view name, what;
  double
      paper_percent;  ///< how much faster HM-Keeper was in 002 (Fig. 8.5; 8.10, 8.11 and 8.13); 0: no figure
};
const std::vector<PolicyInfo>& replay_policies();
Result<std::unique_ptr<ReplayPolicy>> make_replay_policy(std::string_view name, const TraceShape& shape,
                                                         const Machine& machine,
                                                         const ReplayOptions& options);

struct ReplayResult {
  std::string policy;
  double seconds = 0;  ///< all of the following
  double program_seconds = 0, looking_seconds = 0, migrating_seconds = 0;
  double most_looking = 0;       ///< the largest share of a window that profiling took
  std::vector<double> accesses;  ///< by tier
  std::uint64_t moved_bytes = 0;
  double recall = -1, precision = -1;  ///< of the hot set in the last window, where it is known
};

/// Fails with one sentence where the policy is unknown or the machine cannot hold the trace.
Result<ReplayResult> replay(const AccessTrace& trace, const Machine& machine, std::string_view policy,
                            const ReplayOptions& options);

/// Seconds that a program's accesses take where tiers serve so many of them, and copies take so many bytes of
/// each tier's bandwidth.
double program_seconds(const Machine& machine, const ReplayOptions& options,
                       std::span<const Accesses> by_tier, std::span<const double> copied_bytes);

}  // namespace terrace::pages

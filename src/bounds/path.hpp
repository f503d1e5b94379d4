// SPDX-License-Identifier: Apache-2.0
// The cheapest way, at some multipliers, to have one tensor's values where its kernels use them.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <vector>

#include "bounds/problem.hpp"

namespace terrace::bounds {

/// When links are busy: beside the step's own kernels, or before them, when these pause and others may be
/// recomputed.
enum class Part : std::uint8_t { run, pause };

struct Multipliers {
  std::vector<double> memory;   ///< >= 0, by kernel: for a byte of tier 0
  std::vector<double> operand;  ///< >= 0, by operand, in seconds of its kernel's own weight
  std::vector<double> out, in;  ///< >= 0, by block: of a second that a link is busy beside kernels
  std::vector<double> pause_out, pause_in;  ///< the same in pauses

  explicit Multipliers(const Problem& problem);
  /// What share of a part of a block's time links take up at these multipliers: at most one.
  double weight(const Problem& problem, std::uint32_t block, Part part) const;
  /// Brings weights down to one where they are more.
  void limit(const Problem& problem);
};

/// Whether what is not kept may be recomputed.
enum class Recompute { no, yes };

/// What things cost at some multipliers, all in seconds for a byte.
struct UnitCosts {
  UnitCosts(const Problem& problem, const Multipliers& multipliers);
  double hold(std::uint32_t first, std::uint32_t end) const { return until[end] - until[first]; }

  std::vector<double> until;                ///< of memory at all moments before this one
  std::vector<double> weight;               ///< by block: of kernels
  std::vector<double> pause_weight;         ///< by block: of what is recomputed
  double least_weight = 1;                  ///< of the latter, of all blocks
  std::vector<double> out, in;              ///< by block: of a copy beside kernels
  std::vector<double> pause_out, pause_in;  ///< by block: of a copy in its pauses
  /// How long copies take beside kernels, and when these begin. A bound does not ask: it lets any copy be
  /// done while one kernel runs.
  struct Pace {
    std::span<const double> begin;  ///< by kernel, in seconds
    double out = 0, in = 0;         ///< seconds of the tensor's copies
    /// The share of a copy that is done between two kernels.
    double done(double copy, std::uint32_t from, std::uint32_t until) const {
      return begin.empty() || copy <= 0 ? 1 : std::min(1.0, (begin[until] - begin[from]) / copy);
    }
  };
  Pace pace;
};

/// Where a value is: in fast memory, in slower memory, or in both.
enum Location : std::uint8_t { kFast, kBoth, kSlow };
constexpr std::size_t kLocations = 3;

/// What happens to a value between two uses.
enum class Passage : std::uint8_t {
  overwritten,
  rests,
  stays,
  stays_stored,
  leaves,
  comes,
  goes_round,
  recomputed,
  recomputed_comes,   ///< in slower memory, and copied in
  recomputed_stored,  ///< in fast memory, and copied out
  stays_recomputed,   ///< in slower memory, too
};

/// When something is best done: its cost for a byte, the block, until or from which moment the byte is in
/// fast memory because of it, and what share of it is done beside kernels: the rest is in pauses.
struct When {
  double cost = std::numeric_limits<double>::infinity();
  std::uint32_t block = 0, moment = 0;
  double beside = 0;

  void offer(const When& other) {
    if (other.cost < cost) *this = other;
  }
};

/// What recomputing a value takes, for a byte. A kernel that works in place needs the value it wrote over
/// first: where kernels use tier 0 alone, that one was gone from there, and is recomputed or copied in, too.
struct Recomputation {
  double seconds = std::numeric_limits<double>::infinity();  ///< of the kernel that wrote it
  double slow_seconds = seconds;                             ///< the same where it writes to slower memory
  double before = 0;                                         ///< the cost of what it wrote over
  double before_seconds = 0;                                 ///< of kernels, where that is recomputed
  bool copies = false;                                       ///< it is copied in instead
};

/// What a tensor may do between two of its uses, and what each of that costs.
struct Interim {
  std::uint32_t first = 0, end = 0;  ///< moments
  double stay = 0;
  When stored;  ///< copied out without leaving
  When out;     ///< copied out, then or before, and gone
  When in;
  When recompute, recompute_slow;
  When weight;  ///< the least weight of recomputation since the value was written
  Recomputation recomputation;
  bool recompute_is_copied = false;  ///< into slower memory, from fast memory where it was recomputed
};

/// The cheapest passage from one location to another.
struct Crossing {
  double cost = std::numeric_limits<double>::infinity();
  Passage passage = Passage::overwritten;

  void offer(double other, Passage by) {
    if (other < cost) cost = other, passage = by;
  }
};

/// The cheapest passages of an interim between all locations.
class Crossings {
 public:
  explicit Crossings(const Interim& interim);
  const Crossing& operator()(Location from, Location to) const { return to_[to][from]; }

 private:
  std::array<std::array<Crossing, kLocations>, kLocations> to_;
};

/// How a tensor comes to one of its uses, or to the step's end, from the one before or the step's start.
struct Arrival {
  Passage passage = Passage::overwritten;
  Location from = kFast, to = kFast;  ///< `to`: where the use finds it, or where it is written
};

struct TensorPath {
  double cost = 0;                ///< of the tensor
  When cheapest_in;               ///< of all blocks, whatever memory it takes
  std::vector<Interim> interims;  ///< before each use, then before the step's end
  std::vector<Arrival> arrivals;  ///< by use; of a persistent tensor one more for the step's end
};

/// Tells `sink` what a path takes: hold(first, end) of memory, copy_out(when), copy_in(when),
/// recompute(block, seconds) of kernels, and slow(operand).
template <class Sink>
void follow(const Problem& problem, const BoundTensor& tensor, const TensorPath& path, Sink&& sink) {
  for (std::size_t i = 0; i < path.arrivals.size(); ++i) {
    const Interim& interim = path.interims[i];
    const Arrival& arrival = path.arrivals[i];
    const Passage by = arrival.passage;
    if (by == Passage::stays || by == Passage::stays_stored || by == Passage::stays_recomputed)
      sink.hold(interim.first, interim.end);
    if (by == Passage::stays_stored) sink.copy_out(interim.stored);
    if (by == Passage::leaves || by == Passage::goes_round) {
      sink.hold(interim.first, interim.out.moment);
      sink.copy_out(interim.out);
    }
    if (by == Passage::comes || by == Passage::goes_round || by == Passage::recomputed_comes) {
      sink.hold(interim.in.moment, interim.end);
      sink.copy_in(interim.in);
    }
    const auto make = [&](const When& when) {
      const bool slow = &when == &interim.recompute_slow && !interim.recompute_is_copied;
      const double own = slow ? interim.recomputation.slow_seconds : interim.recomputation.seconds;
      sink.recompute(when.block, (own + interim.recomputation.before_seconds) * tensor.bytes);
      if (&when == &interim.recompute_slow && interim.recompute_is_copied) sink.copy_out(interim.stored);
      if (interim.recomputation.copies) sink.copy_in(path.cheapest_in);
    };
    if (by == Passage::recomputed_comes || by == Passage::stays_recomputed) make(interim.recompute_slow);
    if (by == Passage::recomputed_stored) sink.copy_out(interim.stored);
    if (by == Passage::recomputed || by == Passage::recomputed_stored) {
      const When& when = arrival.to == kSlow ? interim.recompute_slow : interim.recompute;
      sink.hold(when.moment, interim.end);
      make(when);
    }
    if (i == tensor.uses_end - tensor.uses) break;  // the step's end
    const BoundUse& use = problem.uses[tensor.uses + i];
    if (arrival.to != kSlow) sink.hold(use.kernel, std::min(use.kernel + 1, problem.moments()));
    if (arrival.to == kSlow && use.operand != kNever) sink.slow(use.operand);
  }
}

class Paths {
 public:
  explicit Paths(const Problem& problem) : problem_(problem) {}
  /// No arrivals where there is no way. Valid until the next call.
  const TensorPath& cheapest(const BoundTensor& tensor, const Multipliers& multipliers,
                             const UnitCosts& unit_costs, Recompute recompute);

 private:
  using Costs = std::array<double, kLocations>;
  using Arrivals = std::array<Arrival, kLocations>;  ///< by where the value is after the use

  /// Where an interim begins: after a use, or when the step starts.
  struct Begin {
    std::uint32_t first = 0;     ///< the first kernel of the interim
    std::uint32_t can_come = 0;  ///< the first beside which it can come: already the use, if that only reads
    When stored;                 ///< the cheapest copy out so far
    When weight;                 ///< the least weight of recomputation so far
    Recomputation recomputation;
  };
  void add_interim(const Begin& begin, std::uint32_t until, const UnitCosts& unit_costs);
  void leave(const Begin& begin, std::uint32_t until, const UnitCosts& unit_costs, Interim& interim) const;
  void come(const Begin& begin, std::uint32_t until, const UnitCosts& unit_costs, Interim& interim) const;
  Recomputation make(const BoundTensor& tensor, const BoundUse& use, const Recomputation& before,
                     const UnitCosts& unit_costs) const;
  void find_interims(const BoundTensor& tensor, const UnitCosts& unit_costs, Recompute recompute);
  void try_start(const BoundTensor& tensor, const Costs& start, const Multipliers& multipliers,
                 const UnitCosts& unit_costs);
  Costs use(const BoundTensor& tensor, const BoundUse& use, const Costs& before, const Crossings& crossings,
            const Multipliers& multipliers, const UnitCosts& unit_costs, Arrivals& arrivals) const;
  void trace(std::size_t uses, Location last);

  const Problem& problem_;
  TensorPath best_;
  std::vector<Crossings> crossings_;  ///< of the interims
  std::vector<Arrivals> arrivals_;
};

}  // namespace terrace::bounds

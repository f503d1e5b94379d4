// The fast solver of AutoTM's placement problem: a plan with a proof of how good it is, in moments.
//
// Taken alone a tensor's best path is a shortest one and a kernel's best configuration a minimum. What
// couples them is relaxed and priced: a byte of fast memory at each moment, an operand's place in fast
// memory, and for each kernel how much of its time is that of the moves beside it. Any prices give a lower
// bound of every solution's time (relaxation.hpp). On a smaller problem (reduction.hpp) good prices are
// climbed to (ascent.hpp), better ones come with shares of paths (saddle.hpp); for a small gap this goes on
// in a second stage (stage.hpp). Placements are made along both (placement.hpp) and improved (exchange.hpp).
// Why so, with figures: docs/planners/autotm-solver.md.
//
// Prices prove no more than the linear relaxation does. Where a problem is small and its relaxation far from
// its solutions, the exact program (program.hpp) can be asked in the end.
#pragma once

#include <limits>
#include <stop_token>

#include "planners/autotm/model/instance.hpp"

namespace terrace::autotm {

/// The usual limit of FastOptions::work: some seconds of an ordinary core.
constexpr double kFastWork = 4e8;

struct FastOptions {
  double gap = 0.01;                     ///< stops once (time - bound) / bound is at most this
  std::uint64_t iterations = 1'000'000;  ///< of the multipliers, at most
  /// How many edges and configurations all iterations may go through together: large problems get fewer.
  double work = std::numeric_limits<double>::infinity();
  /// Looked at every few iterations and after each placement. A solution that no stop cut short depends on
  /// nothing but instance and options.
  std::stop_token stop = {};
  std::uint64_t seed = 0;  ///< of the order in which tensors choose
  /// What prices have not proved of a small problem is left to the exact program, which branches, if the
  /// build has it. Then `bound` may be more than the prices prove.
  bool branches = false;
  /// 1, or 2: first for the prices of large problems, then for placements, more of them, beside the prices.
  /// Either gives its own solution, the same on every run.
  unsigned threads = 1;
};

struct FastResult {
  Solution solution;
  Seconds time{0};   ///< of the solution
  Seconds bound{0};  ///< no solution of this instance is faster
  std::vector<double>
      multipliers;  ///< by moment: what one more byte of fast memory there saves, in seconds, at most
  std::uint64_t iterations = 0;
  bool within_gap = false;  ///< else a limit came first

  /// Infinite where nothing was proved.
  double gap() const {
    if (bound.count() > 0) return time / bound - 1;
    return time.count() > 0 ? std::numeric_limits<double>::infinity() : 0;
  }
};

/// Fails with `too_large` where some moment asks for more fast memory than there is, naming
/// it; with `unsupported` where no solution was found, though there may be one.
Result<FastResult> solve_fast(const Instance& instance, const FastOptions& options);

}  // namespace terrace::autotm

// SPDX-License-Identifier: Apache-2.0
// Integer linear programs, solved by CBC (https://github.com/coin-or/Cbc) where the build has it.
//
// The only file that knows the solver: none of its types are here. Solving is quiet, uses one thread and, if
// no time runs out, gives the same answer every time.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "terrace/bytes.hpp"

namespace terrace::optim {

struct Term {
  int variable = 0;
  double factor = 0;
};

enum class MilpStatus {
  proven,      ///< `values` are within the gap of the best
  stopped,     ///< time ran out; `values` are the best found
  infeasible,  ///< proven
  unknown,     ///< time ran out before anything was found
};

struct MilpResult {
  MilpStatus status = MilpStatus::unknown;
  double objective = 0;
  double bound = 0;  ///< no solution is below
  std::vector<double> values;
};

/// Where a search ends. Nodes are counts of work: with them alone the answer is the same every time.
struct MilpLimits {
  Seconds time{1e9};  ///< the solver's own clock; for callers whose user asked for it
  std::uint64_t nodes = 1'000'000'000;
};

/// Returns whether this build can solve at all.
bool has_cbc();

/// Minimises. Built row by row, then solved once.
class Milp {
 public:
  enum class Kind { continuous, binary };

  /// Not below zero; a binary one is at most one.
  int add_variable(Kind kind, double cost);
  /// sum of terms <= limit. No variable twice.
  void add_at_most(std::span<const Term> terms, double limit) { add_row(terms, -kInfinite, limit); }
  void add_equal(std::span<const Term> terms, double value) { add_row(terms, value, value); }

  std::size_t variables() const { return cost_.size(); }
  std::size_t rows() const { return lower_.size(); }

  /// `gap`: relative, between what is found and what is proven. pre: has_cbc()
  MilpResult solve(double gap, const MilpLimits& limits) const;

 private:
  static constexpr double kInfinite = std::numeric_limits<double>::max();
  struct Entry {
    int variable, row;
    double factor;
  };
  void add_row(std::span<const Term> terms, double lower, double upper);

  std::vector<double> cost_;
  std::vector<Kind> kind_;
  std::vector<double> lower_, upper_;  ///< of rows
  std::vector<Entry> entries_;
};

}  // namespace terrace::optim

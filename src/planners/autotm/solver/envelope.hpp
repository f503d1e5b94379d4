// SPDX-License-Identifier: Apache-2.0
// What a kernel and the moves beside it take at least, where only shares of its configurations and of the
// moves are known: the least mean of max{time, moves} over all mixtures of a configuration and a set of moves
// that have these shares. It is a small linear program, solved by the simplex method with columns made when
// they are wanted. Its multipliers of the moves say which inequality the shares break most.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace terrace::autotm {

/// A configuration or a move: how long it takes, and how much of it is taken.
struct Part {
  double time = 0, share = 0;
};

/// What is left for a kernel when moves are charged for: the least over sets of them of max{time, moves} less
/// their charges. With it in place of a configuration's time, and the charges beside it, an inequality holds
/// for every set.
class Rests {
 public:
  Rests(std::span<const double> times, std::span<const double> charges);
  double of(double time) const;

 private:
  std::vector<double> times_, charges_;  ///< by set of moves
};

class Envelope {
 public:
  /// All sets of moves are listed, so there may be only a few moves.
  static constexpr std::size_t kMostMoves = 8;

  /// Returns the least mean, or less by rounding. pre: there are configurations, whose shares add up to 1;
  /// times above 0; at most kMostMoves; shares within [0, 1]
  double solve(std::span<const Part> configurations, std::span<const Part> moves);
  /// By move: what the latest solve charges for it, at least 0.
  const std::vector<double>& charges() const { return charges_; }

 private:
  struct Column {
    std::uint32_t configuration;  ///< or kSurplus + move: the slack of a move taken more often than asked for
    std::uint32_t moves;          ///< as bits
  };

  void begin();
  void invert();
  double prove();
  /// Finds a column that makes the mean less. Returns whether there is one.
  bool find_entering();
  /// Takes the column into the basis. Returns whether another one left for it.
  bool enter();
  double cost(const Column& column) const;
  double entry(const Column& column, std::size_t row) const;

  std::span<const Part> configurations_, moves_;
  std::size_t rows_ = 0;
  std::vector<Column> basis_;
  Column entering_{};
  std::vector<double> inverse_;         ///< the inverse of the basis, row by row
  std::vector<double> shares_;          ///< by row of the basis: the share of its column
  std::vector<double> multipliers_;     ///< by row of the program
  std::vector<double> times_, worths_;  ///< by set of moves: the sums over its moves
  std::vector<double> work_;
  std::vector<double> charges_;
};

}  // namespace terrace::autotm

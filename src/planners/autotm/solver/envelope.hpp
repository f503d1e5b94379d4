// What a kernel and the moves beside it take at least, where only shares of its configurations and of the
// moves are known: the least mean of max{time, moves} over all mixtures of a configuration and a set of moves
// that have these shares. It is a small linear program, solved by the simplex method with columns made when
// they are wanted. Its prices of the moves say which inequality the shares break most.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace terrace::autotm {

/// A configuration or a move: how long it takes, and how much of it is taken.
struct Part {
  double time = 0, share = 0;
};

/// With charges for moves, what is left for the kernel: the least over sets of them of max{time, moves} less
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
  /// Sets of moves are listed one by one.
  static constexpr std::size_t kMostMoves = 8;

  /// Not above the least mean, and equal but for rounding. pre: some configuration, whose shares add up to 1;
  /// times above 0; at most kMostMoves; shares within [0, 1]
  double solve(std::span<const Part> configurations, std::span<const Part> moves);
  /// By move, of the latest solve: what it is charged, from 0 on.
  const std::vector<double>& charges() const { return charges_; }

 private:
  struct Column {
    std::uint32_t configuration;  ///< or kSurplus + move: that it is taken more than asked for
    std::uint32_t moves;          ///< as bits
  };

  void begin();
  void invert();
  double prove();
  /// Whether there is a column that makes the mean less.
  bool find_entering();
  /// Whether another column left for it.
  bool enter();
  double cost(const Column& column) const;
  double entry(const Column& column, std::size_t row) const;

  std::span<const Part> configurations_, moves_;
  std::size_t rows_ = 0;
  std::vector<Column> basis_;
  Column entering_{};
  std::vector<double> inverse_;         ///< of the basis, row by row
  std::vector<double> shares_;          ///< by row of the basis: of its column
  std::vector<double> multipliers_;     ///< by row of the program
  std::vector<double> times_, worths_;  ///< by set of moves
  std::vector<double> work_;
  std::vector<double> charges_;
};

}  // namespace terrace::autotm

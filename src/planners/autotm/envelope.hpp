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

class Envelope {
 public:
  /// Sets of moves are listed one by one.
  static constexpr std::size_t kMostMoves = 8;

  /// The least mean. pre: some configuration, whose shares add up to 1; times above 0; at most kMostMoves;
  /// shares within [0, 1]
  double solve(std::span<const Part> configurations, std::span<const Part> moves);
  /// By move, of the latest solve: what it is charged, from 0 on.
  const std::vector<double>& charges() const { return charges_; }
  /// With these charges, the least over sets of moves of max{time, moves} - charges: with it in place of a
  /// configuration's time, and the charges beside it, an inequality holds for every set.
  static double rest(double time, std::span<const double> times, std::span<const double> charges);

 private:
  struct Column {
    std::uint32_t configuration;  ///< or kSurplus + move: that it is taken more than asked for
    std::uint32_t moves;          ///< as bits
  };

  void begin();
  void invert();
  /// Whether there is a column that makes the mean less: what it would save is `saving_`.
  bool find_entering();
  bool enter();
  double cost(const Column& column) const;
  double entry(const Column& column, std::size_t row) const;

  std::span<const Part> configurations_, moves_;
  std::size_t rows_ = 0;
  std::vector<Column> basis_;
  Column entering_{};
  std::vector<double> inverse_;         ///< of the basis, row by row
  std::vector<double> shares_;          ///< by row of the basis: of its column
  std::vector<double> prices_;          ///< by row of the program
  std::vector<double> times_, worths_;  ///< by set of moves
  std::vector<double> work_;
  std::vector<double> charges_;
};

}  // namespace terrace::autotm

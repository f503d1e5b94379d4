// SPDX-License-Identifier: Apache-2.0
#include "planners/autotm/solver/envelope.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace terrace::autotm {
namespace {

constexpr std::uint32_t kSurplus = 1U << 16;
constexpr double kLeastPivot = 1e-9;
constexpr int kMostPivots = 100;

/// Lists the sum over every set of items; a set is a number whose bits are its items.
void list_sums(std::vector<double>& sums, std::size_t items, auto of) {
  sums.resize(std::size_t{1} << items);
  sums[0] = 0;
  for (std::size_t set = 1; set < sums.size(); ++set)
    sums[set] = sums[set & (set - 1)] + of(static_cast<std::size_t>(std::countr_zero(set)));
}

}  // namespace

double Envelope::solve(std::span<const Part> configurations, std::span<const Part> moves) {
  configurations_ = configurations;
  moves_ = moves;
  rows_ = configurations.size() + moves.size();
  list_sums(times_, moves.size(), [&](std::size_t i) { return moves[i].time; });
  begin();
  invert();
  for (int pivot = 0; pivot < kMostPivots && find_entering(); ++pivot) {
    if (!enter()) break;
  }
  return prove();
}

/// Returns a lower bound that the charges alone prove, however inexact the multipliers are.
double Envelope::prove() {
  std::vector<double> times;
  charges_.clear();
  double mean = 0;
  for (std::size_t i = 0; i < moves_.size(); ++i) {
    times.push_back(moves_[i].time);
    charges_.push_back(std::max(0.0, multipliers_[configurations_.size() + i]));
    mean += moves_[i].share * charges_[i];
  }
  const Rests rests(times, charges_);
  for (const Part& one : configurations_) mean += one.share * rests.of(one.time);
  return mean;
}

/// Begins with nested sets of moves, the larger ones beside the slower configurations.
void Envelope::begin() {
  basis_.clear();
  shares_.clear();
  std::vector<std::uint32_t> configurations, order;
  for (std::uint32_t c = 0; c < configurations_.size(); ++c) configurations.push_back(c);
  for (std::uint32_t i = 0; i < moves_.size(); ++i) order.push_back(i);
  std::sort(configurations.begin(), configurations.end(), [&](auto a, auto b) {
    return std::pair(configurations_[a].time, a) > std::pair(configurations_[b].time, b);
  });
  std::sort(order.begin(), order.end(),
            [&](auto a, auto b) { return std::pair(moves_[a].share, a) < std::pair(moves_[b].share, b); });
  std::uint32_t set = (1U << moves_.size()) - 1;
  double at = 0, until = 0;
  std::size_t next = 0;
  for (std::size_t c = 0; c < configurations.size(); ++c) {
    const bool is_last = c + 1 == configurations.size();
    until = is_last ? 1 : until + configurations_[configurations[c]].share;
    while (next < order.size() && (is_last || moves_[order[next]].share < until)) {
      const double end = std::max(at, std::min(1.0, moves_[order[next]].share));
      basis_.push_back({configurations[c], set});
      shares_.push_back(end - at);
      at = end;
      set &= ~(1U << order[next++]);
    }
    basis_.push_back({configurations[c], set});
    shares_.push_back(std::max(0.0, until - at));
    at = std::max(at, until);
  }
}

double Envelope::cost(const Column& column) const {
  return column.configuration >= kSurplus
             ? 0
             : std::max(configurations_[column.configuration].time, times_[column.moves]);
}

double Envelope::entry(const Column& column, std::size_t row) const {
  if (column.configuration >= kSurplus)
    return row == configurations_.size() + column.configuration - kSurplus ? -1 : 0;
  if (row < configurations_.size()) return row == column.configuration ? 1 : 0;
  return (column.moves >> (row - configurations_.size()) & 1U) != 0 ? 1 : 0;
}

/// Inverts the basis by Gauss-Jordan elimination.
void Envelope::invert() {
  const std::size_t n = rows_;
  work_.assign(n * n, 0);
  inverse_.assign(n * n, 0);
  for (std::size_t row = 0; row < n; ++row) {
    for (std::size_t column = 0; column < n; ++column) work_[row * n + column] = entry(basis_[column], row);
    inverse_[row * n + row] = 1;
  }
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t pivot = i;
    for (std::size_t row = i + 1; row < n; ++row) {
      if (std::abs(work_[row * n + i]) > std::abs(work_[pivot * n + i])) pivot = row;
    }
    for (std::size_t j = 0; j < n && pivot != i; ++j) {
      std::swap(work_[pivot * n + j], work_[i * n + j]);
      std::swap(inverse_[pivot * n + j], inverse_[i * n + j]);
    }
    const double scale = 1 / work_[i * n + i];
    for (std::size_t j = 0; j < n; ++j) {
      work_[i * n + j] *= scale;
      inverse_[i * n + j] *= scale;
    }
    for (std::size_t row = 0; row < n; ++row) {
      const double factor = work_[row * n + i];
      if (row == i || factor == 0) continue;
      for (std::size_t j = 0; j < n; ++j) {
        work_[row * n + j] -= factor * work_[i * n + j];
        inverse_[row * n + j] -= factor * inverse_[i * n + j];
      }
    }
  }
}

bool Envelope::find_entering() {
  multipliers_.assign(rows_, 0);
  for (std::size_t i = 0; i < rows_; ++i) {
    const double its = cost(basis_[i]);
    for (std::size_t row = 0; row < rows_; ++row) multipliers_[row] += its * inverse_[i * rows_ + row];
  }
  const std::size_t configurations = configurations_.size();
  list_sums(worths_, moves_.size(), [&](std::size_t i) { return multipliers_[configurations + i]; });
  double least = -kLeastPivot * configurations_[0].time;
  bool found = false;
  const auto take = [&](double reduced, Column column) {
    if (reduced >= least) return;
    least = reduced;
    entering_ = column;
    found = true;
  };
  for (std::uint32_t i = 0; i < moves_.size(); ++i) take(multipliers_[configurations + i], {kSurplus + i, 0});
  for (std::uint32_t c = 0; c < configurations; ++c) {
    for (std::uint32_t set = 0; set < times_.size(); ++set)
      take(std::max(configurations_[c].time, times_[set]) - multipliers_[c] - worths_[set], {c, set});
  }
  return found;
}

bool Envelope::enter() {
  const std::size_t n = rows_;
  work_.assign(n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t row = 0; row < n; ++row) work_[i] += inverse_[i * n + row] * entry(entering_, row);
  }
  std::size_t leaving = n;
  for (std::size_t i = 0; i < n; ++i) {
    if (work_[i] <= kLeastPivot) continue;
    if (leaving == n || shares_[i] * work_[leaving] < shares_[leaving] * work_[i]) leaving = i;
  }
  if (leaving == n) return false;
  const double scale = 1 / work_[leaving], share = shares_[leaving] * scale;
  for (std::size_t j = 0; j < n; ++j) inverse_[leaving * n + j] *= scale;
  for (std::size_t i = 0; i < n; ++i) {
    if (i == leaving || work_[i] == 0) continue;
    for (std::size_t j = 0; j < n; ++j) inverse_[i * n + j] -= work_[i] * inverse_[leaving * n + j];
    shares_[i] = std::max(0.0, shares_[i] - work_[i] * share);
  }
  shares_[leaving] = share;
  basis_[leaving] = entering_;
  return true;
}

Rests::Rests(std::span<const double> times, std::span<const double> charges) {
  list_sums(times_, times.size(), [&](std::size_t i) { return times[i]; });
  list_sums(charges_, times.size(), [&](std::size_t i) { return charges[i]; });
}

double Rests::of(double time) const {
  double least = time;
  for (std::size_t set = 1; set < times_.size(); ++set)
    least = std::min(least, std::max(time, times_[set]) - charges_[set]);
  return least;
}

}  // namespace terrace::autotm

// SPDX-License-Identifier: Apache-2.0
// The three shapes of loop that our own kernels are made of: over elements, over rows, and a sum. Each runs
// on the team's threads and on the chosen level.
//
// A row is worked on by one thread, ranges of elements start at multiples of one unit, and a sum is made of
// parts that depend on its length alone: so no result depends on the number of threads. Bodies are small
// function objects that are copied, capture by value, and neither throw nor keep state.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "base/check.hpp"
#include "math/level.hpp"
#include "math/team.hpp"

namespace terrace::math {

/// Ranges of elements start at multiples of this: whole cache lines and whole vectors at every level.
inline constexpr std::int64_t kUnit = 64;

namespace detail {

/// Less work than this many elements is not worth a second thread.
inline constexpr std::int64_t kLeastPiece = std::int64_t{1} << 14;

/// Where piece `piece` of [0, n) starts, of `pieces` nearly equal ones with borders at multiples of `unit`.
constexpr std::int64_t border(std::int64_t n, std::int64_t piece, std::int64_t pieces, std::int64_t unit) {
  const std::int64_t units = (n + unit - 1) / unit;
  return std::min(n, units / pieces * piece * unit + std::min(piece, units % pieces) * unit);
}

}  // namespace detail

/// Calls body(begin, end) for ranges that make up [0, n) and start at multiples of kUnit.
template <class Body>
void for_ranges(std::int64_t n, Body body) {
  check(n >= 0, "a number of elements is negative");
  if (n == 0) return;
  const std::int64_t pieces = std::clamp(n / detail::kLeastPiece, std::int64_t{1}, team_size());
  for_pieces(pieces, [=, chosen = level()](std::int64_t piece) {
    run_at(chosen, body, detail::border(n, piece, pieces, kUnit),
           detail::border(n, piece + 1, pieces, kUnit));
  });
}

/// Calls body(i) for every i in [0, n). The calls may be done side by side in one vector: what one writes, no
/// other may read.
template <class Body>
void for_elements(std::int64_t n, Body body) {
  for_ranges(n, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

/// Calls body(begin, end) for ranges that make up the rows [0, rows), each of `columns` elements. There are
/// more ranges than threads, so that rows may differ in work.
template <class Body>
void for_rows(std::int64_t rows, std::int64_t columns, Body body) {
  check(rows >= 0 && columns >= 0, "a number of rows or columns is negative");
  if (rows == 0) return;
  constexpr std::int64_t kPiecesPerThread = 8;
  const std::int64_t wanted = std::max(rows * columns / detail::kLeastPiece, std::int64_t{1});
  const std::int64_t pieces = std::min({wanted, rows, kPiecesPerThread * team_size()});
  for_pieces(pieces, [=, chosen = level()](std::int64_t piece) {
    run_at(chosen, body, detail::border(rows, piece, pieces, 1), detail::border(rows, piece + 1, pieces, 1));
  });
}

/// The sum of body(begin, end), a double, over ranges that make up [0, n) and depend on n alone.
template <class Body>
double sum_over_ranges(std::int64_t n, Body body) {
  check(n >= 0, "a number of elements is negative");
  if (n == 0) return 0;
  std::array<double, 64> parts{};
  const std::int64_t most = parts.size();
  const std::int64_t pieces = std::clamp(n / detail::kLeastPiece, std::int64_t{1}, most);
  for_pieces(pieces, [=, &parts, chosen = level()](std::int64_t piece) {
    parts[static_cast<std::size_t>(piece)] = run_at(chosen, body, detail::border(n, piece, pieces, kUnit),
                                                    detail::border(n, piece + 1, pieces, kUnit));
  });
  double sum = 0;
  for (const double part : parts) sum += part;
  return sum;
}

/// Returns the greatest element of a row; minus infinity where it is empty.
[[gnu::always_inline]] inline float greatest(const float* row, std::int64_t columns) {
  float most = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : most)
  for (std::int64_t c = 0; c < columns; ++c) most = row[c] > most ? row[c] : most;
  return most;
}

}  // namespace terrace::math

// SPDX-License-Identifier: Apache-2.0
// Codes: a vector in a few bytes, from which its distance to a query can be guessed (product quantisation). A
// search on a disk walks by guesses and reads only the vectors of nodes whose links it follows.
//
//   part    some neighbouring dimensions; a code has one byte for each part
//   centre  one of up to 256 points of a part; the byte names the centre nearest to the vector there
//
// The same codes from the same vectors everywhere. Plain data, thread-safe to read.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ann/graph.hpp"

namespace terrace::ann {

struct Codebook {
  static constexpr std::size_t kCentres = 256;

  std::size_t dimension = 0;
  std::size_t parts = 0;       ///< bytes of a code; zero: there are no codes
  std::vector<float> centres;  ///< of each dimension its value in all centres: dimension x kCentres

  /// Floats that hold the centres, which is what a table of guesses for one query takes for each part, too.
  static std::size_t size_for(std::size_t dimension) { return dimension * kCentres; }

  std::size_t begin_of(std::size_t part) const { return part * dimension / parts; }
  void encode(const float* vector, std::uint8_t* code) const;

  /// What each centre of each part adds to the distance: parts x kCentres.
  void make_table(Metric metric, const float* query, std::vector<float>& table) const;
  /// The distance that the table guesses for the code.
  static float guess(const std::vector<float>& table, const std::uint8_t* code, std::size_t parts) {
    float sums[4] = {0, 0, 0, 0};
    std::size_t part = 0;
    const float* row = table.data();
    for (; part + 4 <= parts; part += 4, row += 4 * kCentres) {
      for (std::size_t i = 0; i < 4; ++i) sums[i] += row[i * kCentres + code[part + i]];
    }
    for (; part < parts; ++part, row += kCentres) sums[0] += row[code[part]];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  bool operator==(const Codebook&) const = default;
};

/// Learns centres by k-means, part by part, from up to a few thousand rows that `row` returns for numbers
/// below `count`. pre: 1 <= parts <= dimension, count > 0
Codebook learn_codebook(std::size_t dimension, std::size_t parts, std::uint64_t count,
                        const std::function<const float*(std::uint64_t)>& row, std::uint64_t seed);

}  // namespace terrace::ann

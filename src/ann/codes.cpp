// SPDX-License-Identifier: Apache-2.0
#include "ann/codes.hpp"

#include <algorithm>
#include <limits>

#include "base/check.hpp"
#include "base/random.hpp"

namespace terrace::ann {
namespace {

constexpr std::size_t kSample = 8192;
constexpr int kIterations = 8;

/// The centre of columns `begin` to `end` that is nearest to the vector there; of equal ones the first.
std::size_t nearest_centre(const std::vector<float>& centres, std::size_t begin, std::size_t end,
                           const float* vector) {
  float distances[Codebook::kCentres] = {};
  for (std::size_t column = begin; column < end; ++column) {
    const float* values = centres.data() + column * Codebook::kCentres;
    for (std::size_t centre = 0; centre < Codebook::kCentres; ++centre) {
      const float difference = vector[column] - values[centre];
      distances[centre] += difference * difference;
    }
  }
  return static_cast<std::size_t>(std::min_element(distances, distances + Codebook::kCentres) - distances);
}

/// One step of k-means for one part: moves each centre to the mean of the rows nearest to it. One without
/// rows stays.
void improve(Codebook& book, std::size_t part, const std::vector<const float*>& sample) {
  const std::size_t begin = book.begin_of(part), end = book.begin_of(part + 1);
  std::vector<double> sums((end - begin) * Codebook::kCentres);
  std::vector<std::uint32_t> counts(Codebook::kCentres);
  for (const float* row : sample) {
    const std::size_t centre = nearest_centre(book.centres, begin, end, row);
    ++counts[centre];
    for (std::size_t column = begin; column < end; ++column)
      sums[(column - begin) * Codebook::kCentres + centre] += double{row[column]};
  }
  for (std::size_t column = begin; column < end; ++column) {
    for (std::size_t centre = 0; centre < Codebook::kCentres; ++centre) {
      if (counts[centre] == 0) continue;
      book.centres[column * Codebook::kCentres + centre] =
          static_cast<float>(sums[(column - begin) * Codebook::kCentres + centre] / counts[centre]);
    }
  }
}

}  // namespace

void Codebook::encode(const float* vector, std::uint8_t* code) const {
  for (std::size_t part = 0; part < parts; ++part)
    code[part] =
        static_cast<std::uint8_t>(nearest_centre(centres, begin_of(part), begin_of(part + 1), vector));
}

void Codebook::make_table(Metric metric, const float* query, std::vector<float>& table) const {
  table.assign(parts * kCentres, 0);
  for (std::size_t part = 0; part < parts; ++part) {
    float* out = table.data() + part * kCentres;
    for (std::size_t column = begin_of(part); column < begin_of(part + 1); ++column) {
      const float* values = centres.data() + column * kCentres;
      for (std::size_t centre = 0; centre < kCentres; ++centre) {
        const float difference = query[column] - values[centre];
        out[centre] += metric == Metric::l2 ? difference * difference : -query[column] * values[centre];
      }
    }
  }
  // A cosine distance is one minus the product: one part brings the one.
  if (metric != Metric::cosine || parts == 0) return;
  for (std::size_t centre = 0; centre < kCentres; ++centre) table[centre] += 1;
}

Codebook learn_codebook(std::size_t dimension, std::size_t parts, std::uint64_t count,
                        const std::function<const float*(std::uint64_t)>& row, std::uint64_t seed) {
  check(parts >= 1 && parts <= dimension && count > 0, "a code has a byte for each part of some dimensions");
  SplitMix random(seed ^ 0xC0DE);
  std::vector<const float*> sample;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, kSample); ++i)
    sample.push_back(row(count <= kSample ? i : random.below(count)));
  Codebook book{dimension, parts, std::vector<float>(Codebook::size_for(dimension))};
  for (std::size_t centre = 0; centre < Codebook::kCentres; ++centre) {
    const float* first = sample[centre < sample.size() ? centre : random.below(sample.size())];
    for (std::size_t column = 0; column < dimension; ++column)
      book.centres[column * Codebook::kCentres + centre] = first[column];
  }
  for (std::size_t part = 0; part < parts; ++part) {
    for (int i = 0; i < kIterations; ++i) improve(book, part, sample);
  }
  return book;
}

}  // namespace terrace::ann

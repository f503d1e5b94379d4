// SPDX-License-Identifier: Apache-2.0
#include "ann/prepare.hpp"

#include <fmt/format.h>

#include <cfloat>
#include <cmath>

namespace terrace::ann {
namespace {

/// Between two vectors of at most this squared length, no distance and no partial sum of it leaves a float.
constexpr double kGreatestSquare = double{FLT_MAX} / 4;

double square_of(std::span<const float> vector) {
  double sum = 0;
  for (const float value : vector) sum += double{value} * double{value};
  return sum;
}

Error refuse(const std::string& sentence) { return {ErrorCode::invalid_argument, sentence}; }

}  // namespace

Result<void> check_vectors(const Vectors& vectors, Metric metric, std::string_view what) {
  const std::size_t dimension = vectors.dimension;
  if (dimension == 0 || dimension > kMostDimensions)
    return refuse(fmt::format("a {} has 1 to {} dimensions, not {}", what, kMostDimensions, dimension));
  if (vectors.values.size() % dimension != 0)
    return refuse(
        fmt::format("{} values are no whole number of {} dimensions each", vectors.values.size(), dimension));
  for (std::size_t row = 0; row < vectors.count(); ++row) {
    const double square = square_of(vectors[row]);
    // The sum of squares is finite in double precision exactly where every value is.
    if (!std::isfinite(square))
      return refuse(
          fmt::format("{} {} holds a value that is no finite number: leave it out or repair it", what, row));
    if (metric != Metric::cosine && square > kGreatestSquare)
      return refuse(
          fmt::format("{} {} has a length of {:.3g}, and from {:.3g} on distances are no floats: scale the "
                      "vectors down, or use cosine",
                      what, row, std::sqrt(square), std::sqrt(kGreatestSquare)));
  }
  return {};
}

void normalise(std::span<float> values, std::size_t dimension, Metric metric) {
  if (metric != Metric::cosine) return;
  for (std::size_t at = 0; at < values.size(); at += dimension) {
    const auto vector = values.subspan(at, dimension);
    const double length = std::sqrt(square_of(vector));
    if (!(length > 0)) continue;
    for (float& value : vector) value = static_cast<float>(double{value} / length);
  }
}

}  // namespace terrace::ann

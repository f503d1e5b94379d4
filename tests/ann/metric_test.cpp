// SPDX-License-Identifier: Apache-2.0
#include "ann/metric.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ann/made_vectors.hpp"
#include "ann/prepare.hpp"

namespace terrace::ann {
namespace {

constexpr Metric kMetrics[] = {Metric::l2, Metric::inner_product, Metric::cosine};

std::vector<Level> levels() {
  std::vector<Level> all;
  for (const Level level : {Level::scalar, Level::avx2, Level::avx512})
    if (level <= best_level()) all.push_back(level);
  return all;
}

TEST(Distance, AgreesWithTheOracleAtEveryLevelAndDimension) {
  for (const std::size_t dimension :
       {1U, 2U, 7U, 8U, 15U, 16U, 17U, 31U, 33U, 64U, 100U, 128U, 130U, 784U, 4096U}) {
    const Vectors made = generate(mixture(6, dimension));
    for (const Metric metric : kMetrics) {
      Vectors ready = made;
      normalise(ready.values, dimension, metric);
      for (const Level level : levels()) {
        const auto distance = distance_function(metric, level);
        for (std::size_t i = 0; i < 6; ++i) {
          const double exact = exact_distance(metric, made[0], made[i]);
          const double scale =
              std::max({std::fabs(exact), exact_distance(Metric::l2, made[0], made[i]), 1.0});
          EXPECT_NEAR(distance(ready[0].data(), ready[i].data(), dimension), exact, 1e-5 * scale)
              << to_string(metric) << " of " << dimension << " at level " << static_cast<int>(level);
        }
      }
    }
  }
}

TEST(Distance, ReadsNothingBehindTheVector) {
  // What stands after the last value would show in the sum.
  std::vector<float> a(40, std::numeric_limits<float>::quiet_NaN()), b = a;
  for (std::size_t i = 0; i < 21; ++i) a[i] = 1, b[i] = 3;
  for (const Level level : levels())
    EXPECT_EQ(distance_function(Metric::l2, level)(a.data(), b.data(), 21), 84) << static_cast<int>(level);
}

TEST(Distance, OfAZeroVectorByCosineIsOne) {
  Vectors zero = rows({{0, 0, 0}, {1, 2, 2}});
  EXPECT_EQ(exact_distance(Metric::cosine, zero[0], zero[1]), 1);
  normalise(zero.values, 3, Metric::cosine);
  EXPECT_EQ(distance_function(Metric::cosine)(zero[0].data(), zero[1].data(), 3), 1);
  EXPECT_EQ(zero[1][0], 1.0F / 3);
}

TEST(Distance, OfHugeVectorsByCosineIsTheirAngle) {
  Vectors huge = rows({{3e38F, 0}, {3e38F, 3e38F}});
  ASSERT_TRUE(check_vectors(huge, Metric::cosine, "vector").ok());
  EXPECT_NEAR(exact_distance(Metric::cosine, huge[0], huge[1]), 1 - std::sqrt(0.5), 1e-7);
  normalise(huge.values, 2, Metric::cosine);
  EXPECT_NEAR(distance_function(Metric::cosine)(huge[0].data(), huge[1].data(), 2), 1 - std::sqrt(0.5), 1e-6);
}

TEST(Vectors, ThatHaveNoDistanceAreRefusedWithASentence) {
  const auto sentence = [](const Vectors& vectors, Metric metric) {
    const auto result = check_vectors(vectors, metric, "vector");
    return result.ok() ? std::string() : result.error().message;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  for (const Metric metric : kMetrics) {
    EXPECT_NE(
        sentence(rows({{1, 2}, {3, nan}}), metric).find("vector 1 holds a value that is no finite number"),
        std::string::npos);
    EXPECT_NE(sentence(rows({{-infinity, 2}}), metric).find("vector 0"), std::string::npos);
  }
  EXPECT_NE(sentence(rows({{1, 1}, {1e19F, 0}}), Metric::l2).find("vector 1 has a length of 1e+19"),
            std::string::npos);
  EXPECT_NE(sentence(rows({{1e19F, 0}}), Metric::inner_product).find("scale the vectors down"),
            std::string::npos);
  EXPECT_EQ(sentence(rows({{9e18F, 0}, {-9e18F, 0}}), Metric::l2), "") << "their distance is a float";
  EXPECT_NE(sentence(Vectors{}, Metric::l2).find("1 to 65536 dimensions, not 0"), std::string::npos);
  EXPECT_NE(sentence(Vectors{3, {1, 2}}, Metric::l2).find("no whole number"), std::string::npos);
}

TEST(Metric, IsNamedAsItPrints) {
  for (const Metric metric : kMetrics) EXPECT_EQ(parse_metric(to_string(metric)).value(), metric);
  EXPECT_NE(parse_metric("l3").error().message.find("choose l2, ip or cosine"), std::string::npos);
}

TEST(ExactNeighbours, AreOrderedByDistanceThenId) {
  const Vectors vectors = rows({{5}, {1}, {2}, {1}, {-1}});
  const auto found = exact_neighbours(vectors, rows({{0}}), 4, Metric::l2).value();
  const std::vector<Neighbour> expected{{1, 1}, {3, 1}, {4, 1}, {2, 4}};
  EXPECT_EQ(found[0], expected);
}

TEST(ExactNeighbours, OfMoreThanThereAreAreAll) {
  const Vectors vectors = rows({{5, 0}, {1, 1}});
  EXPECT_EQ(exact_neighbours(vectors, rows({{0, 0}}), 10, Metric::l2).value()[0].size(), 2U);
  EXPECT_TRUE(exact_neighbours(vectors, rows({{0, 0}}), 0, Metric::l2).value()[0].empty());
  EXPECT_TRUE(exact_neighbours(Vectors{2, {}}, rows({{0, 0}}), 3, Metric::l2).value()[0].empty());
  EXPECT_NE(exact_neighbours(vectors, rows({{0}}), 3, Metric::l2).error().message.find("1 dimensions"),
            std::string::npos);
}

TEST(ExactNeighbours, AreTheSameForEveryNumberOfThreads) {
  const Vectors vectors = generate(mixture(300, 10)), queries = generate(mixture(40, 10), 1);
  for (const Metric metric : kMetrics)
    EXPECT_EQ(exact_neighbours(vectors, queries, 5, metric, 4).value(),
              exact_neighbours(vectors, queries, 5, metric, 1).value());
}

TEST(Recall, CountsAnswersAsNearAsTheTruth) {
  const Neighbours truth{{{1, 1}, {2, 2}, {3, 3}}};
  EXPECT_EQ(recall({{{1, 1}, {2, 2}, {3, 3}}}, truth, 3), 1);
  EXPECT_EQ(recall({{{9, 3}, {8, 4}}}, truth, 3), 1.0 / 3) << "a tie counts, what is missing does not";
  EXPECT_EQ(recall({{{1, 1.5F}}}, truth, 1), 1) << "the right id counts whatever the rounding";
  EXPECT_EQ(recall({{}}, {{}}, 3), 1);
}

TEST(Mixture, IsTheSameForItsSeedAndHasTheDimensionsItClaims) {
  Mixture made = mixture(2000, 24);
  EXPECT_EQ(generate(made).values, generate(made).values);
  EXPECT_NE(generate(made).values, generate(made, 1).values);
  // Points of one cluster of two intrinsic dimensions lie in a plane: three of them span it.
  made.clusters = 1;
  made.intrinsic = 2;
  const Vectors flat = generate(made);
  const auto from_first = [&](std::size_t row, std::size_t i) {
    return double{flat[row][i]} - double{flat[0][i]};
  };
  std::vector<double> u(24), v(24);
  double uu = 0, uv = 0, vv = 0;
  for (std::size_t i = 0; i < 24; ++i) u[i] = from_first(1, i), uu += u[i] * u[i];
  for (std::size_t i = 0; i < 24; ++i) uv += u[i] * from_first(2, i);
  for (std::size_t i = 0; i < 24; ++i) v[i] = from_first(2, i) - uv / uu * u[i], vv += v[i] * v[i];
  for (std::size_t row = 3; row < 50; ++row) {
    double all = 0, along_u = 0, along_v = 0;
    for (std::size_t i = 0; i < 24; ++i) {
      const double x = from_first(row, i);
      all += x * x, along_u += x * u[i], along_v += x * v[i];
    }
    EXPECT_NEAR(along_u * along_u / uu + along_v * along_v / vv, all, 1e-4 * all);
  }
}

TEST(Mixture, WithSkewPrefersItsFirstClusters) {
  Mixture made = mixture(4000, 4);
  made.clusters = 4;
  made.intrinsic = 1;
  made.hubs = 200;  // nearly every vector is at its centre
  made.skew = 1;
  const Vectors vectors = generate(made);
  Vectors distinct{4, {}};
  std::vector<int> counts;
  for (std::size_t row = 0; row < vectors.count(); ++row) {
    std::size_t at = 0;
    while (at < distinct.count() && exact_distance(Metric::l2, distinct[at], vectors[row]) > 1e-3) ++at;
    if (at == distinct.count()) {
      distinct.values.insert(distinct.values.end(), vectors[row].begin(), vectors[row].end());
      counts.push_back(0);
    }
    ++counts[at];
  }
  std::sort(counts.rbegin(), counts.rend());
  const double harmonic = 1 + 1.0 / 2 + 1.0 / 3 + 1.0 / 4;
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(counts[i], 4000 / harmonic / static_cast<double>(i + 1), 150) << "cluster " << i;
}

}  // namespace
}  // namespace terrace::ann

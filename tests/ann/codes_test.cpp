// SPDX-License-Identifier: Apache-2.0
#include "ann/codes.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "ann/made_vectors.hpp"
#include "support/tiers.hpp"
#include "terrace/ann.hpp"
#include "terrace/error.hpp"

namespace terrace::ann {
namespace {

using namespace literals;

Codebook book_of(const Vectors& vectors, std::size_t parts) {
  return learn_codebook(
      vectors.dimension, parts, vectors.count(), [&](std::uint64_t row) { return vectors[row].data(); }, 1);
}

float guess(const Codebook& book, Metric metric, const float* query, const float* vector) {
  std::vector<float> table;
  book.make_table(metric, query, table);
  std::vector<std::uint8_t> code(book.parts);
  book.encode(vector, code.data());
  return Codebook::guess(table, code.data(), book.parts);
}

TEST(Codes, OfFewVectorsGuessTheirDistancesExactly) {
  // Each of up to 256 vectors is a centre of its own.
  const Vectors vectors = generate(mixture(200, 24)), queries = generate(mixture(5, 24), 1);
  for (const std::size_t parts : {1U, 5U, 6U, 24U}) {
    const Codebook book = book_of(vectors, parts);
    for (std::size_t i = 0; i < 200; ++i) {
      const double exact = exact_distance(Metric::l2, queries[i % 5], vectors[i]);
      EXPECT_NEAR(guess(book, Metric::l2, queries[i % 5].data(), vectors[i].data()), exact, 1e-3 * exact);
    }
  }
}

TEST(Codes, GuessBetterTheMoreBytesTheyHave) {
  const Vectors vectors = generate(mixture(3000, 24)), queries = generate(mixture(20, 24), 1);
  double before = 1e9;
  for (const std::size_t parts : {2U, 6U, 12U, 24U}) {
    const Codebook book = book_of(vectors, parts);
    double error = 0;
    for (std::size_t i = 0; i < 3000; ++i) {
      const double exact = exact_distance(Metric::l2, queries[i % 20], vectors[i]);
      error += std::abs(double{guess(book, Metric::l2, queries[i % 20].data(), vectors[i].data())} - exact);
    }
    EXPECT_LT(error, before) << parts;
    before = error;
  }
}

TEST(Codes, GuessEveryMetric) {
  const Vectors vectors = rows({{0.6F, 0.8F}, {1, 0}, {0, 1}});
  const Codebook book = book_of(vectors, 2);
  const float query[] = {0.8F, 0.6F};
  EXPECT_NEAR(guess(book, Metric::inner_product, query, vectors[0].data()), -0.96, 1e-5);
  EXPECT_NEAR(guess(book, Metric::cosine, query, vectors[0].data()), 0.04, 1e-5);
  EXPECT_NEAR(guess(book, Metric::l2, query, vectors[1].data()), 0.04 + 0.36, 1e-5);
}

TEST(Codes, AreTheSameFromTheSameVectors) {
  const Vectors vectors = generate(mixture(500, 24));
  EXPECT_EQ(book_of(vectors, 6), book_of(vectors, 6));
}

BuildOptions with_codes(std::uint32_t bytes) {
  BuildOptions options;
  options.links = 8;
  options.ef_construction = 60;
  options.fast = 330_KB;
  options.cache = 150_KB;
  options.code_bytes = bytes;
  return options;
}

TEST(Codes, SpareADiskReadsAtTheSameRecall) {
  const Vectors vectors = generate(mixture(4000, 32)), queries = generate(mixture(100, 32), 1);
  const auto truth = exact_neighbours(vectors, queries, 10, Metric::l2).value();
  const auto tier = open_tier("fake:4MiB,blocks").value();
  const auto search = [&](std::uint32_t bytes, std::uint32_t ef0) {
    const Index index = Index::build(vectors, with_codes(bytes), tier.get()).value();
    EXPECT_LE(index.size().fast(), 330_KB);
    const Neighbours found = index.search(queries, 10, {.ef1 = 20, .ef0 = ef0}).value();
    EXPECT_GE(recall(found, truth, 10), 0.95) << bytes;
    return index.statistics();
  };
  const SearchStatistics without = search(0, 20), with = search(8, 30);
  EXPECT_EQ(without.guesses, 0U);
  EXPECT_GT(with.guesses, 0U);
  EXPECT_LT(with.slow_distances * 2, without.slow_distances);
  EXPECT_LT(with.reads * 3, without.reads * 2) << "though the cache holds much of so small an index";
}

TEST(Codes, GiveExactDistancesInEveryTierAndInThreads) {
  const Vectors vectors = generate(mixture(2000, 24)), queries = generate(mixture(40, 24), 1);
  const auto truth = exact_neighbours(vectors, vectors, 2, Metric::l2).value();
  const auto disk = open_tier("fake:4MiB,blocks").value();
  const SearchOptions search{.ef1 = 12, .ef0 = 40, .beam = 4, .shares = 3, .ahead = 4};
  std::vector<Neighbours> found;
  for (Tier* tier : {static_cast<Tier*>(nullptr), disk.get()}) {
    for (const unsigned threads : {1U, 3U}) {
      BuildOptions options = with_codes(6);
      options.threads = threads;
      options.cache = 500_KB;
      options.fast = 900_KB;
      const Index index = Index::build(vectors, options, tier).value();
      found.push_back(index.search(queries, 10, search).value());
      for (std::size_t i = 0; i < queries.count(); ++i) {
        for (const Neighbour& one : found.back()[i]) {
          const double exact = exact_distance(Metric::l2, queries[i], vectors[one.id]);
          EXPECT_NEAR(one.distance, exact, 1e-5 * exact);
        }
      }
    }
  }
  for (const Neighbours& one : found) EXPECT_EQ(one, found[0]);
}

TEST(Codes, HaveAtMostAByteForEachDimension) {
  const auto refused = Index::build(generate(mixture(100, 5)), {.code_bytes = 6});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("at most a byte for each of the 5 dimensions"), std::string::npos);
}

}  // namespace
}  // namespace terrace::ann

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "ann/made_vectors.hpp"
#include "support/tiers.hpp"
#include "terrace/ann.hpp"
#include "terrace/error.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace::ann {
namespace {

using namespace literals;

BuildOptions small(Metric metric = Metric::l2) {
  BuildOptions options;
  options.metric = metric;
  options.links = 8;
  options.ef_construction = 60;
  return options;
}

/// An upper layer of a quarter of the nodes, and a cache.
BuildOptions split(Bytes fast = 200_KB, Bytes cache = 0_B) {
  BuildOptions options = small();
  options.fast = fast + cache;
  options.cache = cache;
  return options;
}

double recall_at(const Index& index, const Vectors& queries, const Neighbours& truth,
                 const SearchOptions& search) {
  return recall(index.search(queries, 10, search).value(), truth, 10);
}

TEST(Index, FindsNearlyAllWithEveryMetric) {
  const Vectors vectors = generate(mixture(3000, 24)), queries = generate(mixture(100, 24), 1);
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
    const Index index = Index::build(vectors, small(metric)).value();
    const auto truth = exact_neighbours(vectors, queries, 10, metric).value();
    EXPECT_GE(recall_at(index, queries, truth, {.ef0 = 100}), 0.97) << to_string(metric);
  }
}

TEST(Index, AnswersWithTheDistancesOfTheOracle) {
  const Vectors vectors = generate(mixture(500, 24)), queries = generate(mixture(20, 24), 1);
  const Index index = Index::build(vectors, small()).value();
  const auto truth = exact_neighbours(vectors, queries, 10, Metric::l2).value();
  const auto found = index.search(queries, 10, {.ef0 = 500}).value();
  for (std::size_t i = 0; i < truth.size(); ++i) {
    ASSERT_EQ(found[i].size(), 10U);
    for (std::size_t k = 0; k < 10; ++k) {
      EXPECT_EQ(found[i][k].id, truth[i][k].id);
      EXPECT_NEAR(found[i][k].distance, truth[i][k].distance, 1e-5F * truth[i][k].distance);
    }
  }
}

TEST(Index, FindsMoreTheFartherItLooks) {
  const Vectors vectors = generate(mixture(3000, 24)), queries = generate(mixture(100, 24), 1);
  const Index index = Index::build(vectors, small()).value();
  const auto truth = exact_neighbours(vectors, queries, 10, Metric::l2).value();
  double before = 0;
  std::uint64_t distances = 0;
  for (const std::uint32_t ef : {10U, 20U, 40U, 80U, 160U}) {
    const std::uint64_t started = index.statistics().slow_distances;
    const double now = recall_at(index, queries, truth, {.ef0 = ef});
    EXPECT_GE(now, before);
    EXPECT_GT(index.statistics().slow_distances - started, distances);
    distances = index.statistics().slow_distances - started;
    before = now;
  }
  EXPECT_GE(before, 0.98);
  EXPECT_LT(distances, 100 * 3000 / 2) << "it looks at far fewer than all";
}

TEST(HmAnn, ReachesTheRecallOfHnswWithFewerSlowDistances) {
  const Vectors vectors = generate(mixture(4000, 24, 0.5)), queries = generate(mixture(200, 24, 0.5), 1);
  const auto truth = exact_neighbours(vectors, queries, 10, Metric::l2).value();
  const Index hnsw = Index::build(vectors, small()).value();
  const Index split_index = Index::build(vectors, split(250_KB)).value();
  const double by_hnsw = recall_at(hnsw, queries, truth, {.ef0 = 60});
  const double by_split = recall_at(split_index, queries, truth, {.ef1 = 60, .ef0 = 30});
  EXPECT_GE(by_split, by_hnsw - 0.005);
  EXPECT_LT(split_index.statistics().slow_distances, hnsw.statistics().slow_distances / 2);
}

TEST(HmAnn, FillsTheFastMemoryItWasGivenAndNoMore) {
  const Vectors vectors = generate(mixture(4000, 24));
  const Index index = Index::build(vectors, split(200_KB, 50_KB)).value();
  const IndexSize size = index.size();
  EXPECT_LE(size.fast(), 250_KB);
  EXPECT_GT(size.fast(), 249_KB);
  EXPECT_EQ(size.searchers, Bytes{2 * 4000});
  EXPECT_EQ(size.marks, Bytes{63 * 8});
  EXPECT_EQ(size.slow_elements.count, (4000 - size.promoted) * 24 * 4);
}

TEST(HmAnn, SaysHowMuchFastMemoryItNeeds) {
  const auto refused = Index::build(generate(mixture(4000, 24)), split(8_KB));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::too_large);
  EXPECT_NE(refused.error().message.find("give it at least 8.46 KiB"), std::string::npos)
      << refused.error().message;
}

TEST(HmAnn, AnswersFromTheUpperLayerAloneWhereEf0IsZero) {
  const Vectors vectors = generate(mixture(2000, 24)), queries = generate(mixture(20, 24), 1);
  const Index index = Index::build(vectors, split()).value();
  const auto found = index.search(queries, 10, {.ef1 = 30, .ef0 = 0}).value();
  EXPECT_EQ(index.statistics().slow_distances, 0U);
  EXPECT_EQ(index.statistics().slow_hops, 0U);
  for (const auto& one : found) EXPECT_EQ(one.size(), 10U);
}

TEST(HmAnn, FindsNoLessInSharesThanInOne) {
  const Vectors vectors = generate(mixture(3000, 24)), queries = generate(mixture(100, 24), 1);
  const Index index = Index::build(vectors, split()).value();
  const auto truth = exact_neighbours(vectors, queries, 10, Metric::l2).value();
  const double one = recall_at(index, queries, truth, {.ef1 = 16, .ef0 = 20});
  EXPECT_GE(recall_at(index, queries, truth, {.ef1 = 16, .ef0 = 20, .shares = 4}), one);
}

TEST(Index, AnswersTheSameWhereverItsSlowPartLies) {
  const TemporaryFolder folder;
  const Vectors vectors = generate(mixture(2000, 24)), queries = generate(mixture(40, 24), 1);
  const std::string file = "file:" + (folder.path() / "slow").native() + ":4MiB,depth=64";
  std::vector<Neighbours> expected;
  for (const std::string& spec : {std::string("memory"), std::string("dram:4MiB"),
                                  std::string("emulated:4MiB,read=39GB/s,write=13GB/s,latency=300ns"), file,
                                  file + ",pool", std::string("fake:4MiB,blocks")}) {
    const auto tier = spec == "memory" ? nullptr : open_tier(spec).value();
    const Index index = Index::build(vectors, split(250_KB, 150_KB), tier.get()).value();
    std::vector<Neighbours> found;
    for (const SearchOptions& search :
         {SearchOptions{.ef1 = 20, .ef0 = 20}, SearchOptions{.ef1 = 1, .ef0 = 60},
          SearchOptions{.ef1 = 30, .ef0 = 12, .beam = 4, .shares = 2}})
      found.push_back(index.search(queries, 10, search).value());
    if (spec == "memory") expected = found;
    EXPECT_EQ(found, expected) << spec;
  }
}

TEST(Index, OnADiskReadsEachRoundAtOnceAndCaches) {
  const Vectors vectors = generate(mixture(2500, 24)), queries = generate(mixture(60, 24), 1);
  const auto tier = open_tier("fake:4MiB,blocks").value();
  const auto reads_with = [&](Bytes cache) {
    const Index index = Index::build(vectors, split(250_KB, cache), tier.get()).value();
    for (int i = 0; i < 3; ++i) (void)index.search(queries, 10, {.ef1 = 20, .ef0 = 20}).value();
    const SearchStatistics done = index.statistics();
    EXPECT_GT(done.reads, done.rounds);
    EXPECT_EQ(done.slow_bytes, done.reads * 4096);
    return done.reads;
  };
  EXPECT_LT(reads_with(1_MB) * 4, reads_with(150_KB));
}

TEST(Index, SaysWhichCacheADiskNeeds) {
  const auto tier = open_tier("fake:4MiB,blocks").value();
  const auto refused = Index::build(generate(mixture(2500, 24)), split(250_KB, 10_KB), tier.get());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("a cache of 9.77 KiB is too small"), std::string::npos)
      << refused.error().message;
  const auto tiny = open_tier("fake:64KiB,blocks").value();
  const auto full = Index::build(generate(mixture(2500, 24)), split(250_KB, 150_KB), tiny.get());
  ASSERT_FALSE(full.ok());
  EXPECT_NE(full.error().message.find("give it more"), std::string::npos);
}

TEST(Index, FailsAQueryAloudWhereTheDiskFailsAndGoesOnAfterIt) {
  using Fault = FakeTier::Fault;
  const Vectors vectors = generate(mixture(2500, 24)), queries = generate(mixture(30, 24), 1);
  const auto tier = open_tier("fake:4MiB,blocks").value();
  const SearchOptions search{.ef1 = 20, .ef0 = 20};
  const Neighbours expected =
      Index::build(vectors, split(250_KB, 150_KB)).value().search(queries, 10, search).value();
  const Index index = Index::build(vectors, split(250_KB, 150_KB), tier.get()).value();
  for (const Fault fault : {Fault::io_error, Fault::short_transfer, Fault::no_progress}) {
    for (const std::uint64_t nth : {1U, 2U, 7U, 40U}) {
      as_fake(*tier).fail(nth, fault, Access::read);
      EXPECT_THROW((void)index.search(queries, 10, search), EnvironmentError)
          << static_cast<int>(fault) << " " << nth;
      as_fake(*tier).heal();
      EXPECT_EQ(index.search(queries, 10, search).value(), expected);
    }
  }
}

TEST(Index, FailsToBuildAloudWhereTheDiskFails) {
  const auto tier = open_tier("fake:4MiB,blocks").value();
  as_fake(*tier).fail(3, FakeTier::Fault::no_space, Access::write);
  EXPECT_THROW((void)Index::build(generate(mixture(2500, 24)), split(250_KB, 150_KB), tier.get()),
               EnvironmentError);
  // A short write goes on where it ended.
  const Vectors vectors = generate(mixture(1000, 24)), queries = generate(mixture(10, 24), 1);
  as_fake(*tier).heal();
  as_fake(*tier).fail(2, FakeTier::Fault::short_transfer, Access::write);
  const Index index = Index::build(vectors, split(150_KB, 150_KB), tier.get()).value();
  EXPECT_EQ(index.search(queries, 5, {}).value(),
            Index::build(vectors, split(150_KB, 150_KB)).value().search(queries, 5, {}).value());
}

TEST(Index, SearchesInThreadsAsInOne) {
  const Vectors vectors = generate(mixture(2000, 24)), queries = generate(mixture(80, 24), 1);
  BuildOptions options = split(250_KB);
  options.searchers = 3;
  const Index index = Index::build(vectors, options).value();
  const auto expected = index.search(queries, 10, {.ef1 = 10, .ef0 = 20}).value();
  std::vector<Neighbours> found(6);
  {
    std::vector<std::jthread> threads;
    for (auto& one : found)
      threads.emplace_back([&] { one = index.search(queries, 10, {.ef1 = 10, .ef0 = 20}).value(); });
  }
  for (const auto& one : found) EXPECT_EQ(one, expected);
  EXPECT_EQ(index.statistics().queries, 7 * 80U);
}

TEST(Removal, LeavesTheRestAsEasyToFind) {
  const Vectors vectors = generate(mixture(3000, 24)), queries = generate(mixture(100, 24), 1);
  Index index = Index::build(vectors, split(250_KB)).value();
  const SearchOptions search{.ef1 = 20, .ef0 = 40};
  const double before =
      recall_at(index, queries, exact_neighbours(vectors, queries, 10, Metric::l2).value(), search);
  std::uint32_t removed = 0;
  for (const std::uint32_t percent : {10U, 50U, 90U}) {
    for (; removed < 3000 * percent / 100; ++removed) ASSERT_TRUE(index.remove(removed * 7 % 3000).ok());
    // The truth of what is left: removed vectors are far from every query.
    Vectors left = vectors;
    for (std::uint32_t i = 0; i < removed; ++i) {
      const std::size_t at = std::size_t{i * 7 % 3000} * 24;
      std::fill_n(left.values.begin() + static_cast<std::ptrdiff_t>(at), 24, 1e6F);
    }
    const Neighbours truth = exact_neighbours(left, queries, 10, Metric::l2).value();
    const Neighbours found = index.search(queries, 10, search).value();
    EXPECT_GE(recall(found, truth, 10), before - 0.01) << percent;
    for (const auto& list : found) {
      ASSERT_EQ(list.size(), 10U);
      for (const Neighbour& one : list)
        EXPECT_NE(left.values[std::size_t{one.id} * 24], 1e6F) << "was removed";
    }
  }
  EXPECT_EQ(index.size().removed, 2700U);
}

TEST(Removal, OfAllLeavesNothingAndOfTwinsTheOthers) {
  Index index = Index::build(rows({{1, 1}, {2, 2}, {1, 1}, {1, 1}}), small()).value();
  ASSERT_TRUE(index.remove(0).ok());
  ASSERT_TRUE(index.remove(0).ok());
  const Neighbours found = index.search(rows({{1, 1}}), 10, {}).value();
  const std::vector<Neighbour> expected{{2, 0}, {3, 0}, {1, 2}};
  EXPECT_EQ(found[0], expected);
  for (const std::uint32_t id : {1U, 2U, 3U}) ASSERT_TRUE(index.remove(id).ok());
  const Neighbours none = index.search(rows({{1, 1}}), 10, {}).value();
  EXPECT_TRUE(none[0].empty());
  EXPECT_NE(index.remove(4).error().message.find("there is no vector 4"), std::string::npos);
}

TEST(Removal, BesideSearchesIsSeenOrNot) {
  const Vectors vectors = generate(mixture(1000, 12)), queries = generate(mixture(40, 12), 1);
  BuildOptions options = split(250_KB);
  options.searchers = 2;
  Index index = Index::build(vectors, options).value();
  {
    const std::jthread remover([&] {
      for (std::uint32_t id = 0; id < 1000; id += 2) (void)index.remove(id).ok();
    });
    const std::jthread other([&] { (void)index.search(queries, 10, {}).value(); });
    for (int i = 0; i < 3; ++i) (void)index.search(queries, 10, {}).value();
  }
  const Neighbours found = index.search(queries, 10, {}).value();
  for (const auto& list : found)
    for (const Neighbour& one : list) EXPECT_EQ(one.id % 2, 1U);
}

TEST(Index, OfNothingAnswersWithNothing) {
  const auto disk = open_tier("fake:1MiB,blocks").value();
  for (Tier* tier : {static_cast<Tier*>(nullptr), disk.get()}) {
    const Index index = Index::build(Vectors{3, {}}, small(), tier).value();
    const Neighbours found = index.search(rows({{1, 2, 3}, {4, 5, 6}}), 5, {}).value();
    const Neighbours expected(2);
    EXPECT_EQ(found, expected);
    EXPECT_EQ(index.size().fast(), Bytes{0});
  }
}

TEST(Index, OfFewerThanKAnswersWithAll) {
  for (const std::size_t count : {1U, 2U, 7U, 8U, 9U, 100U}) {
    const Vectors vectors = generate(mixture(count, 5));
    const Index index = Index::build(vectors, small()).value();
    const Neighbours truth = exact_neighbours(vectors, vectors, count, Metric::l2).value();
    const Neighbours found = index.search(vectors, 1000, {.ef0 = 1}).value();
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(found[i].size(), count);
      for (std::size_t k = 0; k < count; ++k) EXPECT_EQ(found[i][k].id, truth[i][k].id);
    }
  }
  const Index index = Index::build(generate(mixture(50, 5)), small()).value();
  const Neighbours none = index.search(generate(mixture(1, 5), 1), 0, {}).value();
  EXPECT_TRUE(none[0].empty());
}

TEST(Index, OfDuplicatesFindsThemAndTheOthers) {
  Vectors vectors = generate(mixture(300, 8));
  for (int i = 0; i < 500; ++i) vectors.values.insert(vectors.values.end(), 8, i % 2 == 0 ? 0.0F : -0.0F);
  const Index index = Index::build(vectors, small()).value();
  EXPECT_EQ(index.size().vectors, 800U);
  EXPECT_EQ(index.size().nodes, 301U);
  const Neighbours same = index.search(rows({{0, 0, 0, 0, 0, 0, 0, 0}}), 501, {}).value();
  ASSERT_EQ(same[0].size(), 501U);
  for (std::uint32_t i = 0; i < 500; ++i) {
    const Neighbour expected{300 + i, 0};
    EXPECT_EQ(same[0][i], expected);
  }
  const Vectors queries{8, {vectors.values.begin(), vectors.values.begin() + 8 * 40}};
  const Neighbours truth = exact_neighbours(vectors, queries, 5, Metric::l2).value();
  EXPECT_GE(recall(index.search(queries, 5, {.ef0 = 100}).value(), truth, 5), 0.99);
  const Neighbours all = index.search(queries, 5000, {}).value();
  for (const auto& one : all) EXPECT_EQ(one.size(), 800U);
}

TEST(Index, TakesOneDimensionAndManyAndZeroVectors) {
  for (const std::size_t dimension : {1U, 4096U}) {
    const Vectors vectors = generate(mixture(200, dimension)), queries = generate(mixture(10, dimension), 1);
    for (const Metric metric : {Metric::l2, Metric::cosine}) {
      const Index index = Index::build(vectors, small(metric)).value();
      const auto truth = exact_neighbours(vectors, queries, 3, metric).value();
      EXPECT_GE(recall(index.search(queries, 3, {.ef0 = 200}).value(), truth, 3), 0.95);
    }
  }
  const Index zeros = Index::build(rows({{0, 0}, {0, 0}, {1, 0}}), small(Metric::cosine)).value();
  const std::vector<Neighbour> expected{{2, 0}, {0, 1}, {1, 1}};
  EXPECT_EQ(zeros.search(rows({{5, 0}}), 3, {}).value()[0], expected);
}

TEST(Index, RefusesWhatHasNoDistance) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(Index::build(rows({{1, nan}}), small()).error().message.find("vector 0"), std::string::npos);
  EXPECT_NE(Index::build(rows({{1e30F, 0}}), small()).error().message.find("length"), std::string::npos);
  const Index index = Index::build(rows({{1, 2}, {3, 4}}), small()).value();
  EXPECT_NE(index.search(rows({{1, nan}}), 1, {}).error().message.find("query 0"), std::string::npos);
  EXPECT_NE(index.search(rows({{1, 2, 3}}), 1, {}).error().message.find("3 dimensions and the index has 2"),
            std::string::npos);
  BuildOptions wrong = small();
  wrong.links = 1;
  EXPECT_NE(Index::build(rows({{1, 2}}), wrong).error().message.find("2 to 1024 links, not 1"),
            std::string::npos);
}

}  // namespace
}  // namespace terrace::ann

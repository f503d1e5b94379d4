// SPDX-License-Identifier: Apache-2.0
// Building and searching take no more memory than they were given: what is taken with `new` is counted.
#include <gtest/gtest.h>

#include "ann/made_vectors.hpp"
#include "ann/shards.hpp"
#include "support/counted_memory.hpp"
#include "terrace/ann.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace::ann {
namespace {

using namespace literals;

BuildOptions budgeted(Bytes fast, std::uint32_t code_bytes) {
  BuildOptions options;
  options.links = 6;
  options.ef_construction = 20;
  options.fast = fast;
  options.cache = fast / 4;
  options.code_bytes = code_bytes;
  return options;
}

std::uint64_t with_a_percent(Bytes budget) { return (budget + budget / 100).count; }

TEST(Budget, BuildingInShardsStaysWithinIt) {
#ifndef TERRACE_COUNTS_ALLOCATIONS
  GTEST_SKIP() << "allocations are counted in builds without sanitizers";
#endif
  const TemporaryFolder folder;
  const std::size_t count = 24'000, dimension = 96;
  write_vectors(folder.path() / "data.fbin", generate(mixture(count, dimension))).value();
  const BuildOptions options = budgeted(3_MiB, 16);
  const Bytes memory =
      shard_row_bytes(dimension, options.links) * 8000 + Bytes{24 + options.code_bytes} * count + 8_MiB;
  ASSERT_GT(plan_shards(count, dimension, options, memory).value().shards, 1U);
  const counted::Peak peak;
  build_index(folder.path() / "data.fbin", folder.path() / "index", options, memory).value();
  EXPECT_LE(peak.get(), with_a_percent(memory));
}

class SearchBudget : public testing::TestWithParam<std::uint32_t> {};

/// From opening on, and with every option that makes a search keep more.
TEST_P(SearchBudget, IsKeptWhileAnIndexIsOpenedAndSearchedOnADisk) {
#ifndef TERRACE_COUNTS_ALLOCATIONS
  GTEST_SKIP() << "allocations are counted in builds without sanitizers";
#endif
  const TemporaryFolder folder;
  const std::size_t count = 12'000, dimension = 96;
  const Bytes budget = 4_MiB;
  const BuildOptions options = budgeted(budget, GetParam());
  Index::build(generate(mixture(count, dimension)), options).value().save(folder.path() / "index").value();
  const Vectors queries = generate(mixture(50, dimension), 1);
  const counted::Peak peak;
  const Index index =
      Index::open(folder.path() / "index", {.placement = Placement::disk, .cache = options.cache}).value();
  for (const std::uint32_t beam : {1U, 24U})
    (void)index.search(queries, 10, {.ef1 = 64, .ef0 = 100, .beam = beam, .ahead = beam}).value();
  // The frames of the cache are mapped, not taken with `new`; their tables are counted twice here.
  EXPECT_LE(peak.get() + options.cache.count, with_a_percent(budget));
  EXPECT_GE(peak.get() + options.cache.count, (budget - budget / 20).count) << "the budget is used";
}
INSTANTIATE_TEST_SUITE_P(OfCodes, SearchBudget, testing::Values(0U, 48U));

}  // namespace
}  // namespace terrace::ann

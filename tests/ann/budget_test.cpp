// SPDX-License-Identifier: Apache-2.0
// A build takes no more memory than it was given: what is taken with `new` is counted.
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

}  // namespace
}  // namespace terrace::ann

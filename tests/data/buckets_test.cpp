// SPDX-License-Identifier: Apache-2.0
#include "data/buckets.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>

#include "base/random.hpp"

namespace terrace {
namespace {

using Sizes = std::vector<std::int64_t>;

std::int64_t padding(const Sizes& buckets, const Sizes& lengths) {
  std::int64_t sum = 0;
  for (const std::int64_t length : lengths) sum += buckets[bucket_of(buckets, length)] - length;
  return sum;
}

/// By trying every choice.
std::int64_t least_padding(const Sizes& lengths, std::size_t most) {
  const std::set<std::int64_t> differing(lengths.begin(), lengths.end());
  const Sizes sorted(differing.begin(), differing.end());
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t chosen = 0; chosen < 1U << sorted.size(); ++chosen) {
    Sizes buckets;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      if ((chosen >> i & 1U) != 0) buckets.push_back(sorted[i]);
    }
    if (buckets.empty() || buckets.size() > most || buckets.back() != sorted.back()) continue;
    least = std::min(least, padding(buckets, lengths));
  }
  return least;
}

TEST(Buckets, PadAsLittleAsAnyChoiceDoes) {
  SplitMix random(1);
  for (int i = 0; i < 300; ++i) {
    Sizes lengths(1 + random.below(30));
    const std::uint64_t longest = 1 + random.below(11);
    for (std::int64_t& length : lengths) length = static_cast<std::int64_t>(1 + random.below(longest));
    for (std::int64_t& length : lengths) length *= length;  // gaps of all sizes
    const std::size_t most = 1 + random.below(5);
    const Sizes buckets = choose_buckets(lengths, most);
    EXPECT_LE(buckets.size(), most);
    EXPECT_EQ(padding(buckets, lengths), least_padding(lengths, most)) << i;
  }
}

TEST(Buckets, AscendAndEndWithTheLongestLength) {
  const Sizes lengths{35, 10, 12, 12, 30, 11, 20, 35, 9};
  const Sizes buckets = choose_buckets(lengths, 4);
  EXPECT_EQ(buckets.size(), 4U);
  EXPECT_TRUE(std::is_sorted(buckets.begin(), buckets.end()));
  EXPECT_EQ(buckets.back(), 35);
}

TEST(Buckets, AreTheLengthsThemselvesWhereThoseAreFew) {
  EXPECT_EQ(choose_buckets(Sizes{7, 3, 7, 5}), (Sizes{3, 5, 7}));
  EXPECT_EQ(choose_buckets(Sizes{4}), Sizes{4});
}

TEST(Buckets, AreTenAtMostUnlessToldOtherwise) {
  Sizes lengths;
  for (std::int64_t i = 1; i <= 100; ++i) lengths.push_back(i);
  EXPECT_EQ(choose_buckets(lengths), (Sizes{10, 20, 30, 40, 50, 60, 70, 80, 90, 100}));
  EXPECT_EQ(choose_buckets(lengths, 1), Sizes{100});
}

TEST(Buckets, AreFoundForManyLengths) {
  Sizes lengths;
  for (std::int64_t i = 1; i <= 50'000; ++i) lengths.push_back(i);
  EXPECT_EQ(choose_buckets(lengths, 2), (Sizes{25'000, 50'000}));
}

TEST(Buckets, HoldWhatIsNoLongerThanThem) {
  const Sizes buckets{3, 5, 9};
  EXPECT_EQ(bucket_of(buckets, 1), 0U);
  EXPECT_EQ(bucket_of(buckets, 3), 0U);
  EXPECT_EQ(bucket_of(buckets, 4), 1U);
  EXPECT_EQ(bucket_of(buckets, 9), 2U);
  EXPECT_THROW(bucket_of(buckets, 10), std::logic_error);
}

}  // namespace
}  // namespace terrace

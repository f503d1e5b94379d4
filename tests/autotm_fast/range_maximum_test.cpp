#include "optim/range_maximum.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.hpp"

namespace terrace::optim {
namespace {

TEST(RangeMaximum, AgreeWithAPlainArray) {
  for (const std::uint32_t moments : {1U, 2U, 31U, 32U, 33U, 1000U, 1024U, 1025U, 40'000U}) {
    SplitMix random(moments);
    RangeMaximum loads(moments);
    std::vector<std::int64_t> plain(moments);
    for (int i = 0; i < 500; ++i) {
      const auto first = static_cast<std::uint32_t>(random.below(moments));
      // Long ones and short ones.
      const std::uint64_t most = random.below(2) == 0 ? moments - first : std::min(moments - first, 40U);
      const auto end = static_cast<std::uint32_t>(first + random.below(most + 1));
      const auto bytes = static_cast<std::int64_t>(random.below(2000)) - 1000;
      loads.add(first, end, bytes);
      for (std::uint32_t m = first; m < end; ++m) plain[m] += bytes;
      const auto from = static_cast<std::uint32_t>(random.below(moments));
      const auto to = static_cast<std::uint32_t>(from + random.below(moments - from + 1));
      const std::int64_t expected =
          from < to ? *std::max_element(plain.begin() + from, plain.begin() + to) : 0;
      ASSERT_EQ(loads.most(from, to), expected) << moments << ", step " << i;
    }
  }
}

}  // namespace
}  // namespace terrace::optim

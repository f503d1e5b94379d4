// SPDX-License-Identifier: Apache-2.0
#include "data/lengths.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "tiers/temporary_folder.hpp"

namespace terrace {
namespace {

std::string complaint(const std::string& text) {
  const auto lengths = Lengths::read(text);
  return lengths ? "" : lengths.error().message;
}

TEST(Lengths, AreDrawnBetweenTheTwoGiven) {
  const Lengths lengths = Lengths::read("10-35").value();
  std::map<std::int64_t, int> drawn;
  for (std::uint64_t step = 0; step < 5000; ++step) ++drawn[lengths.of(step, 3)];
  EXPECT_EQ(drawn.begin()->first, 10);
  EXPECT_EQ(drawn.rbegin()->first, 35);
  EXPECT_EQ(drawn.size(), 26U);
}

TEST(Lengths, AreShortMoreOftenThanLong) {
  const Lengths lengths = Lengths::read("1-100").value();
  int quarters[4] = {};
  for (std::uint64_t step = 0; step < 4000; ++step) ++quarters[(lengths.of(step, 1) - 1) / 25];
  // The smaller of two is in the first quarter seven times in sixteen, then five, three and one.
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(quarters[i], 250 * (7 - 2 * i), 100) << i;
}

TEST(Lengths, FollowFromTheSeedAndTheStepAlone) {
  const Lengths one = Lengths::read("1-1000").value(), other = Lengths::read("1-1000").value();
  int same = 0;
  for (std::uint64_t step = 0; step < 100; ++step) {
    EXPECT_EQ(one.of(step, 7), other.of(step, 7));
    same += one.of(step, 7) == one.of(step, 8) ? 1 : 0;
  }
  EXPECT_LT(same, 10);
}

TEST(Lengths, OfAFileComeInItsOrderAndAgain) {
  const TemporaryFolder folder;
  std::ofstream(folder / "lengths") << "7\n3\n12";
  const Lengths lengths = Lengths::read(folder / "lengths").value();
  for (std::uint64_t step = 0; step < 9; ++step)
    EXPECT_EQ(lengths.of(step, step), (std::vector<std::int64_t>{7, 3, 12})[step % 3]);
  EXPECT_EQ(lengths.sample(0), (std::vector<std::int64_t>{7, 3, 12}));
}

TEST(Lengths, HaveTheLongestInTheirSample) {
  const auto sample = Lengths::read("1-100000").value().sample(5);
  EXPECT_EQ(*std::max_element(sample.begin(), sample.end()), 100000);
  EXPECT_GT(sample.size(), 500U);
}

TEST(Lengths, ThatAreNoneAreRefusedInOneSentence) {
  const TemporaryFolder folder;
  for (const char* text : {"35-10", "0-5", "1-2000000", "1-99999999999999999999"})
    EXPECT_NE(complaint(text).find("as in 10-35"), std::string::npos) << text << ": " << complaint(text);
  for (const char* text : {"", "abc", "-5", "5-", "17"})
    EXPECT_NE(complaint(text).find("gives no lengths"), std::string::npos) << text << ": " << complaint(text);
  std::ofstream(folder / "empty") << "";
  EXPECT_NE(complaint(folder / "empty").find("is empty"), std::string::npos);
  for (const char* contents : {"5\nx\n", "5\n0\n", "5\n\n7\n", "5\n-3\n", "5\n3 4\n"}) {
    std::ofstream(folder / "wrong") << contents;
    EXPECT_NE(complaint(folder / "wrong").find("line 2 of "), std::string::npos) << contents;
  }
}

}  // namespace
}  // namespace terrace

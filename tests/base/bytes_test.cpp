// SPDX-License-Identifier: Apache-2.0
#include "terrace/bytes.hpp"

#include <gtest/gtest.h>

#include <random>

namespace terrace {
namespace {
using namespace literals;

TEST(Bytes, PrintsTheLargestUnitThatDivides) {
  EXPECT_EQ(to_string(8_GiB), "8GiB");
  EXPECT_EQ(to_string(200_GB), "200GB");
  EXPECT_EQ(to_string(1536_MiB), "1536MiB");
  EXPECT_EQ(to_string(77_B), "77B");
  EXPECT_EQ(to_string(0_B), "0B");
}

TEST(Bytes, ReadsWhatItPrints) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10000; ++i) {
    const Bytes amount{random() >> (random() % 64)};
    EXPECT_EQ(parse_bytes(to_string(amount)).value(), amount);
  }
}

TEST(Bytes, ReadsFractionsOfAUnitButNotOfAByte) {
  EXPECT_EQ(parse_bytes("1.5KiB").value(), 1536_B);
  EXPECT_EQ(parse_bytes("4096").value(), 4_KiB);
  EXPECT_FALSE(parse_bytes("0.3B"));
}

TEST(Bytes, RefusesNonsenseWithASentence) {
  for (const char* text :
       {"", "GiB", "8 GiB", "8gib", "-1GiB", "8GiBx", "1e3", "99999999999TiB", "nan", "inf", "0x10"}) {
    const auto result = parse_bytes(text);
    ASSERT_FALSE(result) << text;
    EXPECT_NE(result.error().message.find("write it like"), std::string::npos) << text;
  }
}

TEST(Rate, ReadsWhatItPrints) {
  for (const char* text : {"39GB/s", "13GB/s", "1.5GB/s", "104GB/s", "2500MB/s", "16GiB/s", "7B/s"}) {
    const BytesPerSecond rate = parse_rate(text).value();
    EXPECT_EQ(parse_rate(to_string(rate)).value(), rate) << text << " printed as " << to_string(rate);
  }
  EXPECT_EQ(to_string(parse_rate("39GB/s").value()), "39GB/s");
}

TEST(Rate, RefusesWhatIsNotPerSecond) {
  for (const char* text : {"39GB", "39/s", "GB/s", "-1GB/s", ""}) EXPECT_FALSE(parse_rate(text)) << text;
}

TEST(Time, ReadsWhatItPrints) {
  for (const char* text : {"304ns", "79ns", "10us", "2ms", "1s", "0ns", "182.7ns"}) {
    const Seconds time = parse_time(text).value();
    EXPECT_EQ(parse_time(to_string(time)).value(), time) << text << " printed as " << to_string(time);
  }
  EXPECT_EQ(to_string(parse_time("304ns").value()), "304ns");
}

TEST(Rounding, KeepsMultiplesAndMovesTheRest) {
  EXPECT_EQ(round_up(4096_B, 4_KiB), 4_KiB);
  EXPECT_EQ(round_up(4097_B, 4_KiB), 8_KiB);
  EXPECT_EQ(round_down(4097_B, 4_KiB), 4_KiB);
}

}  // namespace
}  // namespace terrace

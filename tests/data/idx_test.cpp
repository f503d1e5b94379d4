// SPDX-License-Identifier: Apache-2.0
#include "data/idx.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "data/made_files.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace {
namespace {

using data_test::ByteList;
using data_test::gzip;
using data_test::idx;
using data_test::mentions;

Result<Idx> parse_made(const ByteList& file) { return parse_idx(std::as_bytes(std::span(file)), "made.gz"); }

// The sentence of a refusal_of_idx, empty where there was none.
std::string refusal_of_idx(const ByteList& file) {
  const auto read = parse_made(file);
  return read ? "" : read.error().message;
}

ByteList counting(std::size_t count) {
  ByteList bytes(count);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  return bytes;
}

// More than a reader's piece, and hard to compress.
ByteList noise_bytes(std::size_t count) {
  ByteList bytes(count);
  std::uint32_t state = 1;
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

TEST(Idx, ReadsDimensionsAndBytes) {
  const auto read = parse_made(gzip(idx({2, 3, 4}, counting(24))));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->dims, (std::vector<std::uint32_t>{2, 3, 4}));
  EXPECT_EQ(read->bytes, counting(24));
}

TEST(Idx, ReadsContentsLargerThanOnePiece) {
  const ByteList bytes = noise_bytes((3u << 20) + 5);
  const auto read = parse_made(gzip(idx({(3u << 20) + 5}, bytes)));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->bytes, bytes);
}

TEST(Idx, ReadsAListOfNothing) {
  const auto read = parse_made(gzip(idx({0, 0xFFFFFFFF, 0xFFFFFFFF}, {})));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->bytes.empty());
}

TEST(Idx, ReadsAFile) {
  const TemporaryFolder folder;
  data_test::put(folder / "some.gz", gzip(idx({5}, counting(5))));
  const auto read = read_idx(folder / "some.gz");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->bytes, counting(5));
}

TEST(Idx, RefusesAMissingFileAndAFolder) {
  const TemporaryFolder folder;
  const auto missing = read_idx(folder / "none.gz");
  ASSERT_FALSE(missing);
  EXPECT_TRUE(mentions(missing.error().message, "none.gz: No such file")) << missing.error().message;
  const auto is_folder = read_idx(folder.path());
  ASSERT_FALSE(is_folder);
  EXPECT_TRUE(mentions(is_folder.error().message, "not a regular file")) << is_folder.error().message;
}

TEST(Idx, RefusesWhatIsNotGzip) {
  EXPECT_TRUE(mentions(refusal_of_idx(idx({5}, counting(5))), "made.gz is not a sound gzip file"));
  EXPECT_TRUE(mentions(refusal_of_idx({}), "truncated"));
}

TEST(Idx, RefusesABadMagic) {
  EXPECT_TRUE(mentions(refusal_of_idx(gzip({'P', 'K', 8, 1, 0, 0, 0, 0})), "not an IDX file"));
  EXPECT_TRUE(mentions(refusal_of_idx(gzip({0, 1, 8, 1, 0, 0, 0, 0})), "not an IDX file"));
  EXPECT_TRUE(mentions(refusal_of_idx(gzip({0, 0, 8, 0})), "declares no dimension"));
  EXPECT_TRUE(mentions(refusal_of_idx(gzip({0, 0, 0x0D, 1, 0, 0, 0, 0})), "type 0x0d"));
}

TEST(Idx, RefusesAHeaderThatEndsEarly) {
  const ByteList header = data_test::idx_header({2, 3});
  for (std::size_t kept = 0; kept < header.size(); ++kept) {
    const ByteList start(header.begin(), header.begin() + static_cast<std::ptrdiff_t>(kept));
    EXPECT_TRUE(mentions(refusal_of_idx(gzip(start)), "ends inside the header")) << kept;
  }
}

TEST(Idx, RefusesContentsThatEndEarly) {
  EXPECT_TRUE(
      mentions(refusal_of_idx(gzip(idx({3, 2}, counting(5)))), "ends inside byte 5 of the 6 declared"));
}

TEST(Idx, RefusesMoreThanWasDeclared) {
  EXPECT_TRUE(mentions(refusal_of_idx(gzip(idx({3, 2}, counting(7)))), "more than the 6 bytes declared"));
}

TEST(Idx, RefusesBytesAfterTheCompressedData) {
  ByteList file = gzip(idx({5}, counting(5)));
  file.push_back('!');
  EXPECT_TRUE(mentions(refusal_of_idx(file), "other bytes after"));
}

TEST(Idx, RefusesEveryTruncation) {
  const ByteList file = gzip(idx({200}, noise_bytes(200)));
  for (std::size_t kept = 0; kept < file.size(); ++kept) {
    const ByteList start(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(kept));
    EXPECT_TRUE(mentions(refusal_of_idx(start), "is truncated")) << kept << ": " << refusal_of_idx(start);
  }
}

TEST(Idx, NoFlippedBitChangesWhatIsRead) {
  const ByteList bytes = noise_bytes(200), file = gzip(idx({200}, bytes));
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    ByteList damaged = file;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    const auto read = parse_made(damaged);
    EXPECT_TRUE(!read || read->bytes == bytes) << bit;
    refused += !read;
  }
  // Only the time, the system's name and some padding may differ unseen.
  EXPECT_GT(refused, file.size() * 8 - 80);
}

TEST(Idx, RefusesAWrongChecksum) {
  ByteList file = gzip(idx({5}, counting(5)));
  file[file.size() - 8] ^= 1;  // the last eight bytes are checksum and length
  EXPECT_TRUE(mentions(refusal_of_idx(file), "decompressing the checksum failed"));
}

TEST(Idx, RefusesAbsurdDimensions) {
  EXPECT_TRUE(mentions(refusal_of_idx(gzip(idx({0xFFFFFFFF, 2}, {}))), "declares more than"));
  EXPECT_TRUE(
      mentions(refusal_of_idx(gzip(idx(std::vector<std::uint32_t>(255, 0xFFFFFFFF), {}))), "declares more"));
  // 2^96 wraps to 0 in 64 bits.
  EXPECT_TRUE(
      mentions(refusal_of_idx(gzip(idx({1u << 31, 1u << 31, 1u << 31, 8}, {}))), "declares more than"));
}

TEST(Idx, AForgedHeaderMakesNoMemory) {
  // 4 GB are declared, 5 bytes follow: the refusal_of_idx must come from what was read.
  EXPECT_TRUE(
      mentions(refusal_of_idx(gzip(idx({0xFFFFFFFF}, counting(5)))), "byte 5 of the 4294967295 declared"));
}

}  // namespace
}  // namespace terrace

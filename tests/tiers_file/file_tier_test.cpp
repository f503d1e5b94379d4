// SPDX-License-Identifier: Apache-2.0
// What a user meets when a file tier is opened: what it is, and why it is refused.
#include <fstream>

#include "mount.hpp"
#include "support.hpp"

namespace terrace {
namespace {
using namespace file_test;

class FileTierTest : public ::testing::Test {
 protected:
  std::string spec(const std::string& rest) const { return "file:" + (folder_ / "spill") + ":" + rest; }

  /// Opens what must be refused and returns why.
  static Error refusal(const std::string& text) {
    const auto tier = open_tier(text);
    EXPECT_FALSE(tier) << text;
    if (tier) return {ErrorCode::invalid_argument, ""};
    EXPECT_NE(tier.error().message.find("file:"), std::string::npos) << tier.error().message;
    return tier.error();
  }
  static void expect_says(const Error& error, const std::string& words) {
    EXPECT_NE(error.message.find(words), std::string::npos) << error.message;
  }

  TemporaryFolder folder_;
};

TEST_F(FileTierTest, IsABlockTierOfTheDisksGranularity) {
  const auto tier = open_tier(spec("1MB")).value();
  const TierDescription& description = tier->description();
  EXPECT_FALSE(description.addressable);
  EXPECT_EQ(tier->memory(), nullptr);
  EXPECT_EQ(description.granularity, tier->blocks()->block_size());
  EXPECT_GE(tier->blocks()->block_size(), 4_KiB);
  EXPECT_EQ(description.capacity, round_down(1_MB, description.granularity));
  EXPECT_EQ(tier->blocks()->request_size(), 4_MiB);
  EXPECT_EQ(tier->blocks()->depth(), 32u);
}

TEST_F(FileTierTest, TakesBlockDepthAndThreadsFromTheSpec) {
  const auto tier = open_tier(spec("1MiB,block=64KiB,depth=5,pool,threads=3")).value();
  EXPECT_EQ(tier->blocks()->request_size(), 64_KiB);
  EXPECT_EQ(tier->blocks()->depth(), 5u);
  EXPECT_EQ(tier->description().write_threads, 3u);
}

TEST_F(FileTierTest, RefusesABlockTheDiskDoesNotTake) {
  for (const char* block : {"512B", "2KiB"}) {
    const Error error = refusal(spec("1MiB,block=" + std::string(block)));
    EXPECT_EQ(error.code, ErrorCode::invalid_argument);
    expect_says(error, "multiples of");
    expect_says(error, std::string("block=") + block);
  }
  EXPECT_TRUE(folder_.empty());
}

TEST_F(FileTierTest, ARefusedTierLeavesNoNewFileButKeepsAnOldOne) {
  refusal(spec("1MiB,keep,block=512B"));
  EXPECT_TRUE(folder_.empty());
  std::ofstream(folder_ / "spill") << "precious";
  refusal(spec("1MiB,keep,block=512B"));
  std::string content(8, ' ');
  std::ifstream(folder_ / "spill").read(content.data(), 8);
  EXPECT_EQ(content, "precious");
}

TEST_F(FileTierTest, RefusesLessThanABlock) {
  const Error error = refusal(spec("100B"));
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  expect_says(error, "at least 4KiB");
}

TEST_F(FileTierTest, SmallestTierHoldsOneBlock) {
  const auto tier = open_tier(spec("4KiB")).value();
  Memory written(4096, std::byte{7}), read(4096);
  EXPECT_EQ(transfer(*tier->blocks(), Access::write, 0, written.span()), 4096);
  EXPECT_EQ(transfer(*tier->blocks(), Access::read, 0, read.span()), 4096);
  EXPECT_TRUE(all(read.span(), std::byte{7}));
}

TEST_F(FileTierTest, RefusesAFolder) {
  expect_says(refusal("file:" + folder_.path().string() + ":1MiB"), "is a folder");
}

TEST_F(FileTierTest, RefusesLinksEvenDanglingOnes) {
  std::ofstream(folder_ / "target") << "x";
  std::filesystem::create_symlink(folder_ / "target", folder_ / "spill");
  expect_says(refusal(spec("1MiB,keep")), "link");
  std::filesystem::remove(folder_ / "target");
  expect_says(refusal(spec("1MiB,keep")), "link");
  expect_says(refusal(spec("1MiB")), "link");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "target"));
}

TEST_F(FileTierTest, RefusesAMissingParent) {
  expect_says(refusal("file:" + (folder_ / "none") + "/spill:1MiB"), "does not exist");
}

TEST_F(FileTierTest, RefusesAFolderThatMayNotBeWritten) {
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0555));
  const int status = in_child([&] {
    if (geteuid() == 0 && setresuid(54321, 54321, 54321) != 0) return 77;
    const auto tier = open_tier(spec("1MiB"));
    return !tier && tier.error().message.find("not writable") != std::string::npos ? 0 : 1;
  });
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  if (status == 77) GTEST_SKIP() << "cannot become another user";
  EXPECT_EQ(status, 0);
}

TEST_F(FileTierTest, RefusesMoreThanTheDiskHas) {
  const Error error = refusal(spec("4096TiB"));
  EXPECT_EQ(error.code, ErrorCode::too_large);
  EXPECT_TRUE(folder_.empty());
}

TEST_F(FileTierTest, TwoOnOnePathAreApartUnlessKeptAndThenTheSecondIsRefused) {
  const auto one = open_tier(spec("1MiB")).value(), two = open_tier(spec("1MiB")).value();
  Memory ones(4096, std::byte{1}), twos(4096, std::byte{2}), read(4096);
  EXPECT_EQ(transfer(*one->blocks(), Access::write, 0, ones.span()), 4096);
  EXPECT_EQ(transfer(*two->blocks(), Access::write, 0, twos.span()), 4096);
  EXPECT_EQ(transfer(*one->blocks(), Access::read, 0, read.span()), 4096);
  EXPECT_TRUE(all(read.span(), std::byte{1}));

  const auto kept = open_tier(spec("1MiB,keep")).value();
  expect_says(refusal(spec("1MiB,keep")), "in use");
}

TEST_F(FileTierTest, KeptFileIsPrivateAndOpensAgainWithItsContents) {
  Memory written(1 << 20), read(1 << 20);
  written.randomise(11);
  {
    const auto tier = open_tier(spec("1MiB,keep")).value();
    EXPECT_EQ(transfer(*tier->blocks(), Access::write, 0, written.span()), 1 << 20);
  }
  struct stat status {};
  ASSERT_EQ(stat((folder_ / "spill").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_EQ(status.st_size, 1 << 20);
  for (const char* options : {",keep", ",keep,pool"}) {
    const auto tier = open_tier(spec("1MiB") + options).value();
    EXPECT_EQ(transfer(*tier->blocks(), Access::read, 0, read.span()), 1 << 20);
    EXPECT_TRUE(std::ranges::equal(written.span(), read.span())) << options;
  }
}

TEST_F(FileTierTest, ReservesItsSpaceWhenOpened) {
  const auto tier = open_tier(spec("8MiB,keep")).value();
  struct stat status {};
  ASSERT_EQ(stat((folder_ / "spill").c_str(), &status), 0);
  EXPECT_GE(status.st_blocks * 512, 8 << 20);
}

TEST_F(FileTierTest, WhereDirectIoIsRefusedItSaysSoAndThePageCacheMustBeAccepted) {
  const Mount mount(Mount::Kind::journaled);
  if (!mount.valid()) GTEST_SKIP() << mount.why();
  for (const char* options : {"", ",keep"}) {
    const Error error = refusal("file:" + mount / "spill" + ":1MiB" + options);
    EXPECT_EQ(error.code, ErrorCode::unsupported);
    expect_says(error, "refuses direct I/O");
    expect_says(error, "`,buffered`");
    EXPECT_TRUE(mount.empty());
  }
  const auto tier = open_tier("file:" + mount / "spill" + ":1MiB,buffered").value();
  EXPECT_NE(tier->description().note.find("page cache"), std::string::npos);
}

TEST_F(FileTierTest, AcceptingThePageCacheDoesNotGiveUpDirectIo) {
  if (!open_tier(spec("1MiB"))) GTEST_SKIP() << "this disk refuses direct I/O";
  EXPECT_EQ(open_tier(spec("1MiB,buffered")).value()->description().note, "");
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "base/system_storage.hpp"

#include <gtest/gtest.h>

#include "cli/temporary_tree.hpp"

namespace terrace {
namespace {

using namespace literals;
using test::TemporaryTree;

TEST(Storage, RefusesWhatIsNoFolder) {
  TemporaryTree tree;
  tree.write("file", "");
  EXPECT_NE(probe_storage(tree.path() / "none").error().message.find("does not exist"), std::string::npos);
  EXPECT_NE(probe_storage(tree.path() / "file").error().message.find("is not a folder"), std::string::npos);
  EXPECT_NE(probe_storage("/proc").error().message.find("cannot create a file in /proc"), std::string::npos);
}

TEST(Storage, KnowsMemoryFromADisk) {
  if (!std::filesystem::exists("/dev/shm")) GTEST_SKIP() << "there is no tmpfs here";
  EXPECT_TRUE(probe_storage("/dev/shm").value().in_memory);
}

TEST(Storage, LeavesNothingBehind) {
  TemporaryTree tree;
  ASSERT_TRUE(probe_storage(tree.path()));
  (void)measure_disk(tree.path(), 8_MiB, Seconds{10}, {});
  EXPECT_TRUE(std::filesystem::is_empty(tree.path()));
}

TEST(Disk, CoversWhatWasAskedAndTellsItsProgress) {
  TemporaryTree tree;
  if (probe_storage(tree.path()).value().direct_error != 0) GTEST_SKIP() << "no direct I/O here";
  std::vector<double> shares;
  const DiskSpeed speed =
      measure_disk(tree.path(), 32_MiB, Seconds{60}, [&](double share) { shares.push_back(share); }).value();
  EXPECT_EQ(speed.amount, 32_MiB);
  EXPECT_GT(speed.read.value, 0);
  EXPECT_GT(speed.write.value, 0);
  ASSERT_FALSE(shares.empty());
  EXPECT_GT(shares.front(), 0);
  EXPECT_LE(shares.back(), 1);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
}

TEST(Disk, SaysWhenSpaceIsShort) {
  TemporaryTree tree;
  const auto speed = measure_disk(tree.path(), 1000000_TiB, Seconds{1}, {});
  ASSERT_FALSE(speed);
  EXPECT_NE(speed.error().message.find("could not be measured"), std::string::npos);
}

TEST(Disk, CannotBeMeasuredWithoutAFolder) {
  EXPECT_FALSE(measure_disk("/no/such/folder", 8_MiB, Seconds{1}, {}));
}

}  // namespace
}  // namespace terrace

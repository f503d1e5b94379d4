// SPDX-License-Identifier: Apache-2.0
#include "tiers/backing_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tiers/temporary_folder.hpp"

namespace terrace {
namespace {
using namespace literals;
namespace fs = std::filesystem;

class BackingFileTest : public testing::Test {
 protected:
  Result<BackingFile> open(const std::string& path, bool keep, Bytes capacity = 1_MiB) {
    return open_backing_file(path, capacity, keep, 0, "file:" + path);
  }

  void expect_refused(const std::string& path, bool keep, const std::string& says) {
    const auto file = open(path, keep);
    ASSERT_FALSE(file) << path;
    EXPECT_EQ(file.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(file.error().message.find(says), std::string::npos) << file.error().message;
    EXPECT_NE(file.error().message.find("file:" + path), std::string::npos) << "the tier is named";
  }

  TemporaryFolder folder_;
};

TEST_F(BackingFileTest, IsNeverVisibleUnlessKept) {
  const auto file = open(folder_ / "spill", false);
  ASSERT_TRUE(file);
  EXPECT_TRUE(folder_.empty());
}

TEST_F(BackingFileTest, LosesItsNameAtOnceWhereItNeedsOne) {
  // The kernel refuses a nameless file with this flag, as some file systems refuse any.
  const auto file = open_backing_file(folder_ / "spill", 1_MiB, false, O_CREAT, "file:x");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(folder_.empty());
  struct stat status;
  ASSERT_EQ(fstat(file->fd(), &status), 0);
  EXPECT_EQ(status.st_nlink, 0u);
}

TEST_F(BackingFileTest, RefusesMoreThanTheProcessMayWrite) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 512 << 10;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  const auto file = open(folder_ / "spill", true);
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::too_large);
  EXPECT_NE(file.error().message.find("files of 512.00 KiB at most"), std::string::npos)
      << file.error().message;
  EXPECT_TRUE(folder_.empty());
}

TEST_F(BackingFileTest, ReservesTheWholeCapacityOnTheDisk) {
  const auto file = open(folder_ / "spill", false, 3_MiB);
  struct stat status;
  ASSERT_EQ(fstat(file->fd(), &status), 0);
  EXPECT_EQ(status.st_size, 3 << 20);
  EXPECT_GE(status.st_blocks * 512, 3 << 20);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_NE(fcntl(file->fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(BackingFileTest, KeptFileStaysAndReopensWithItsContents) {
  const std::string path = folder_ / "kept";
  {
    const auto file = open(path, true);
    ASSERT_TRUE(file);
    ASSERT_EQ(pwrite(file->fd(), "terrace", 7, 4096), 7);
  }
  ASSERT_TRUE(fs::exists(path));
  const auto again = open(path, true, 2_MiB);
  ASSERT_TRUE(again) << again.error().message;
  char text[8] = {};
  ASSERT_EQ(pread(again->fd(), text, 7, 4096), 7);
  EXPECT_STREQ(text, "terrace");
  EXPECT_EQ(fs::file_size(path), Bytes{2_MiB}.count);
}

TEST_F(BackingFileTest, RefusesAKeptFileThatIsInUse) {
  const auto file = open(folder_ / "kept", true);
  ASSERT_TRUE(file);
  expect_refused(folder_ / "kept", true, "in use");
}

TEST_F(BackingFileTest, RefusesAFolder) {
  expect_refused(folder_.path().string(), true, "is a folder");
  expect_refused(folder_ / "new/", false, "names a folder");
}

TEST_F(BackingFileTest, RefusesALinkWhereverItPoints) {
  std::ofstream(folder_ / "real");
  fs::create_symlink(folder_ / "real", folder_ / "link");
  fs::create_symlink(folder_ / "nowhere", folder_ / "dangling");
  for (const bool keep : {false, true}) {
    expect_refused(folder_ / "link", keep, "is a link");
    expect_refused(folder_ / "dangling", keep, "is a link");
  }
}

TEST_F(BackingFileTest, RefusesAMissingParent) {
  expect_refused(folder_ / "no/such", false, "does not exist");
  std::ofstream(folder_ / "plain");
  EXPECT_FALSE(open(folder_ / "plain/child", false));
}

TEST_F(BackingFileTest, RefusesToReplaceAFileAndLeavesItAlone) {
  std::ofstream(folder_ / "precious") << "data";
  expect_refused(folder_ / "precious", false, "exists already");
  EXPECT_EQ(fs::file_size(folder_ / "precious"), 4u);
}

TEST_F(BackingFileTest, RefusesWhatIsNoRegularFile) {
  ASSERT_EQ(mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  expect_refused(folder_ / "fifo", true, "not a regular file");
}

TEST_F(BackingFileTest, RefusesAPlaceWhereNothingCanBeWritten) {
  if (geteuid() != 0) {
    fs::permissions(folder_.path(), fs::perms::owner_read | fs::perms::owner_exec);
    expect_refused(folder_ / "spill", false, "not writable");
    fs::permissions(folder_.path(), fs::perms::owner_all);
  }
  // Even root creates nothing here.
  EXPECT_FALSE(open("/proc/terrace-test", false));
  EXPECT_FALSE(open("/proc/terrace-test", true));
}

TEST_F(BackingFileTest, NamesTheMissingBytesOfAFullDiskAndLeavesNothing) {
  const fs::space_info space = fs::space(folder_.path());
  for (const bool keep : {false, true}) {
    const auto file = open(folder_ / "huge", keep, Bytes{space.capacity} + 64_GiB);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code, ErrorCode::too_large);
    EXPECT_NE(file.error().message.find("GiB short of"), std::string::npos) << file.error().message;
    EXPECT_TRUE(folder_.empty());
  }
}

TEST_F(BackingFileTest, MovesItsFile) {
  auto file = open(folder_ / "a", false);
  BackingFile moved = std::move(*file);
  EXPECT_EQ(file->fd(), -1);
  EXPECT_GE(moved.fd(), 0);
  moved = BackingFile(-1);
  EXPECT_EQ(moved.fd(), -1);
}

}  // namespace
}  // namespace terrace

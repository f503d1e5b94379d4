// SPDX-License-Identifier: Apache-2.0
#include "base/replace_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/input_file.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace {
namespace {

Result<void> replace(const std::filesystem::path& path, const std::string& first,
                     const std::string& second = "") {
  const std::array pieces{std::as_bytes(std::span(first)), std::as_bytes(std::span(second))};
  return replace_file(path, pieces);
}

std::string contents(const std::filesystem::path& path) {
  const auto bytes = InputFile::open(path).value().contents();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(ReplaceFile, WritesThePiecesInOrder) {
  const TemporaryFolder folder;
  replace(folder / "x", "one", "two").value();
  EXPECT_EQ(contents(folder / "x"), "onetwo");
  replace(folder / "x", "", "").value();
  EXPECT_EQ(contents(folder / "x"), "");
}

TEST(ReplaceFile, LeavesNothingBeside) {
  const TemporaryFolder folder;
  replace(folder / "x", "one").value();
  std::filesystem::remove(folder / "x");
  EXPECT_TRUE(folder.empty());
}

TEST(ReplaceFile, WorksInTheCurrentFolder) {
  const TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const auto written = replace("x", "one");
  std::filesystem::current_path(before);
  EXPECT_TRUE(written);
  EXPECT_EQ(contents(folder / "x"), "one");
}

TEST(ReplaceFile, GivesTheFileOrdinaryPermissions) {
  const TemporaryFolder folder;
  std::ofstream(folder / "plain") << "x";
  replace(folder / "x", "one").value();
  EXPECT_EQ(std::filesystem::status(folder / "x").permissions(),
            std::filesystem::status(folder / "plain").permissions());
}

TEST(ReplaceFile, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  const auto expect_refused = [&](const std::string& path, const std::string& part) {
    const auto written = replace(path, "one");
    ASSERT_FALSE(written) << path;
    EXPECT_NE(written.error().message.find(part), std::string::npos) << written.error().message;
    const auto checked = check_replaceable(path);
    ASSERT_FALSE(checked) << path;
    EXPECT_EQ(checked.error().message, written.error().message);
  };
  expect_refused(folder.path(), "not a regular file");
  expect_refused("/dev/null", "not a regular file");
  expect_refused(folder / "none/x", "does not exist; create it");
  expect_refused(folder / "new/", "names no file");
  std::ofstream(folder / "file") << "x";
  expect_refused(folder / "file/x", "does not exist; create it");
  expect_refused(folder / std::string(300, 'x').c_str(), "name another path");
}

TEST(ReplaceFile, CanBeTriedOutWithoutATrace) {
  const TemporaryFolder folder;
  EXPECT_TRUE(check_replaceable(folder / "x"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  replace(folder / "x", "old").value();
  EXPECT_TRUE(check_replaceable(folder / "x"));
  EXPECT_EQ(contents(folder / "x"), "old");
}

TEST(ReplaceFile, RefusesMoreThanTheProcessMayWrite) {
  const TemporaryFolder folder;
  replace(folder / "x", "old").value();
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 2;
  setrlimit(RLIMIT_FSIZE, &small);
  const auto written = replace(folder / "x", "new");
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::too_large);
  EXPECT_EQ(contents(folder / "x"), "old");
}

TEST(ReplaceFile, ManyWritersLeaveOneWholeFile) {
  const TemporaryFolder folder;
  std::vector<std::thread> writers;
  for (char letter = 'a'; letter < 'e'; ++letter)
    writers.emplace_back([&folder, letter] {
      for (int i = 0; i < 20; ++i) replace(folder / "x", std::string(10'000, letter)).value();
    });
  for (std::thread& writer : writers) writer.join();
  const std::string last = contents(folder / "x");
  EXPECT_EQ(last, std::string(10'000, last[0]));
  const auto entries = std::filesystem::directory_iterator(folder.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST(ReplaceFile, WorksBesideWhatACrashLeft) {
  const TemporaryFolder folder;
  for (int i = 0; i < 500; ++i)
    std::ofstream(folder.path() / (".terrace-new-" + std::to_string(getpid()) + "-" + std::to_string(i)))
        << "left";
  replace(folder / "x", "one").value();
  EXPECT_EQ(contents(folder / "x"), "one");
}

TEST(ReplaceFile, RemovesWhatAKilledProcessWasWriting) {
  const TemporaryFolder folder;
  const auto make = [&](const char* name) {
    std::ofstream(folder / name) << "left";
    std::filesystem::last_write_time(folder / name,
                                     std::filesystem::file_time_type::clock::now() - std::chrono::minutes(5));
  };
  for (const char* name : {".terrace-new-1-1", ".terrace-new-1-2", "other"}) make(name);
  std::ofstream(folder / ".terrace-new-1-3") << "just begun";
  const int writer = open((folder / ".terrace-new-1-2").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(flock(writer, LOCK_EX | LOCK_NB), 0);
  replace(folder / "x", "one").value();
  EXPECT_FALSE(std::filesystem::exists(folder / ".terrace-new-1-1"));
  for (const char* name : {".terrace-new-1-2", ".terrace-new-1-3", "other", "x"})
    EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
  close(writer);
}

TEST(InputFile, DoesNotWaitForAPipe) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(InputFile::open(folder / "pipe"));
}

}  // namespace
}  // namespace terrace

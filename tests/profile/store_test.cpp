// SPDX-License-Identifier: Apache-2.0
#include "profile/store.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <limits>

#include "profile/database.hpp"
#include "terrace/error.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace {
namespace {

PlacedTime some_time(double cold) {
  PlacedTime time;
  time.cold = Seconds{cold};
  time.warm = Seconds{cold / 2};
  time.spread = Seconds{cold / 100};
  time.samples = 5;
  return time;
}

void write_text(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
std::string read_text(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(ProfileStore, FindsWhatWasSavedByKernelAndCompute) {
  const TemporaryFolder folder;
  auto store = ProfileStore::open(folder / "deep/er/store").value();
  EXPECT_TRUE(store.note().empty());
  EXPECT_FALSE(store.find("conv", "cpu"));
  store.save("conv", "cpu", some_time(1));
  store.save("conv", "other", some_time(2));
  EXPECT_EQ(store.find("conv", "cpu"), some_time(1));
  EXPECT_EQ(store.find("conv", "other"), some_time(2));
  EXPECT_FALSE(store.find("relu", "cpu"));
}

TEST(ProfileStore, KeepsTheNewestTimeBeyondItsLife) {
  const TemporaryFolder folder;
  {
    auto store = ProfileStore::open(folder / "store").value();
    store.save("conv", "cpu", some_time(1));
    store.save("conv", "cpu", some_time(0.1));
  }
  EXPECT_EQ(ProfileStore::open(folder / "store").value().find("conv", "cpu"), some_time(0.1));
}

TEST(ProfileStore, DoesNotFindWhatCannotBeATime) {
  const TemporaryFolder folder;
  auto store = ProfileStore::open(folder / "store").value();
  store.save("negative", "cpu", some_time(-1));
  store.save("endless", "cpu", some_time(std::numeric_limits<double>::infinity()));
  store.save("unmeasured", "cpu", PlacedTime{});
  EXPECT_FALSE(store.find("negative", "cpu"));
  EXPECT_FALSE(store.find("endless", "cpu"));
  EXPECT_FALSE(store.find("unmeasured", "cpu"));
}

TEST(ProfileStore, FindsWhatWasSavedByPlacement) {
  const TemporaryFolder folder;
  {
    auto store = ProfileStore::open(folder / "store").value();
    store.save_placed("conv", "cpu", {{"slow | fast", some_time(1)}, {"slow | slow", some_time(2)}});
    store.save_placed("conv", "cpu", {{"slow | fast", some_time(3)}, {"fast | slow", PlacedTime{}}});
  }
  const auto store = ProfileStore::open(folder / "store").value();
  EXPECT_EQ(store.find_placed("conv", "cpu", "slow | fast"), some_time(3)) << "replaced";
  EXPECT_EQ(store.find_placed("conv", "cpu", "slow | slow"), some_time(2)) << "kept";
  EXPECT_EQ(store.find_placed("conv", "cpu", "fast | slow"), PlacedTime{}) << "left out";
  EXPECT_FALSE(store.find_placed("conv", "cpu", "fast | fast"));
  EXPECT_FALSE(store.find_placed("conv", "other", "slow | fast"));
  EXPECT_FALSE(store.find("conv", "cpu")) << "tier 0 is kept apart";
}

TEST(ProfileStore, DoesNotFindWhatCannotBeATimeInAPlacement) {
  const TemporaryFolder folder;
  auto store = ProfileStore::open(folder / "store").value();
  const PlacedTime endless = some_time(std::numeric_limits<double>::infinity());
  store.save_placed("conv", "cpu",
                    {{"a", some_time(-1)}, {"b", endless}, {"c", some_time(1)}, {"d", some_time(1)}});
  Database(folder / "store").execute("UPDATE kernel_placement SET samples = -3 WHERE placement = 'c'");
  Database(folder / "store").execute("UPDATE kernel_placement SET samples = 1 << 40 WHERE placement = 'd'");
  for (const char* placement : {"a", "b", "c", "d"})
    EXPECT_FALSE(store.find_placed("conv", "cpu", placement)) << placement;
}

const std::vector<Accesses> kSomeAccesses{{1, 0, 12}, {0, 1.5, 3}, {0.25, 0.25, 0}};

TEST(ProfileStore, FindsTheAccessesOfEveryOperand) {
  const TemporaryFolder folder;
  auto store = ProfileStore::open(folder / "store").value();
  EXPECT_TRUE(store.find_accesses("conv", "cpu").empty());
  store.save_accesses("conv", "cpu", std::vector<Accesses>(5));
  store.save_accesses("conv", "other", {{7, 7, 7}});
  store.save_accesses("conv", "cpu", kSomeAccesses);
  EXPECT_EQ(store.find_accesses("conv", "cpu"), kSomeAccesses) << "replaced as a whole";
  EXPECT_FALSE(store.find("conv", "cpu")) << "times are kept apart";
}

TEST(ProfileStore, DoesNotFindWhatCannotBeAccesses) {
  const TemporaryFolder folder;
  auto store = ProfileStore::open(folder / "store").value();
  store.save_accesses("negative", "cpu", {{-1, 0, 1}});
  store.save_accesses("endless", "cpu", {{1, std::numeric_limits<double>::infinity(), 1}});
  store.save_accesses("gap", "cpu", kSomeAccesses);
  Database(folder / "store").execute("DELETE FROM kernel_access WHERE kernel = 'gap' AND operand = 1");
  for (const char* kernel : {"negative", "endless", "gap"})
    EXPECT_TRUE(store.find_accesses(kernel, "cpu").empty()) << kernel;
}

TEST(ProfileStore, FindsADecisionByGraphComputeAndQuestion) {
  const TemporaryFolder folder;
  auto store = ProfileStore::open(folder / "store").value();
  EXPECT_FALSE(store.find_decision("graph", "cpu", "which?"));
  store.save_decision("graph", "cpu", "which?", "this");
  store.save_decision("graph", "cpu", "which?", "that");
  store.save_decision("graph", "cpu", "when?", "");
  EXPECT_EQ(store.find_decision("graph", "cpu", "which?"), "that") << "the newest";
  EXPECT_EQ(store.find_decision("graph", "cpu", "when?"), "");
  EXPECT_FALSE(store.find_decision("other", "cpu", "which?"));
  EXPECT_FALSE(store.find_decision("graph", "other", "which?"));
}

TEST(ProfileStore, AddsWhatIsNewToAFileFromBeforeItWasKept) {
  const TemporaryFolder folder;
  { ProfileStore::open(folder / "store").value().save("conv", "cpu", some_time(1)); }
  Database(folder / "store")
      .execute("DROP TABLE kernel_access; DROP TABLE kernel_placement; DROP TABLE decision");
  auto store = ProfileStore::open(folder / "store").value();
  EXPECT_EQ(store.note(), "");
  EXPECT_EQ(store.find("conv", "cpu"), some_time(1));
  store.save_accesses("conv", "cpu", kSomeAccesses);
  EXPECT_EQ(store.find_accesses("conv", "cpu"), kSomeAccesses);
  store.save_placed("conv", "cpu", {{"slow", some_time(2)}});
  EXPECT_EQ(store.find_placed("conv", "cpu", "slow"), some_time(2));
  store.save_decision("graph", "cpu", "which?", "this");
  EXPECT_EQ(store.find_decision("graph", "cpu", "which?"), "this");
}

TEST(ProfileStore, MovesADamagedFileAsideAndBeginsANewOne) {
  const TemporaryFolder folder;
  const std::string path = folder / "store";
  for (const char* aside : {"store.damaged", "store.damaged-2"}) {
    write_text(path, "this was never a database, and long enough to be one " + std::string(aside));
    auto store = ProfileStore::open(path).value();
    EXPECT_NE(store.note().find(folder / aside), std::string::npos) << store.note();
    EXPECT_TRUE(read_text(folder / aside).ends_with(aside));
    store.save("conv", "cpu", some_time(1));
    EXPECT_EQ(store.find("conv", "cpu"), some_time(1));
  }
}

TEST(ProfileStore, NoticesDamageInTheMiddle) {
  const TemporaryFolder folder;
  const std::string path = folder / "store";
  {
    auto store = ProfileStore::open(path).value();
    for (const char name : {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'})
      store.save(std::string(2000, name), "cpu", some_time(1));
  }
  std::string contents = read_text(path);
  ASSERT_GT(contents.size(), 8192U);
  std::fill(contents.begin() + 4096, contents.end(), '\x5A');
  write_text(path, contents);
  EXPECT_NE(ProfileStore::open(path).value().note().find("is damaged"), std::string::npos);
}

TEST(ProfileStore, MovesAFileOfAnotherVersionAside) {
  const TemporaryFolder folder;
  { ProfileStore::open(folder / "store").value().save("conv", "cpu", some_time(1)); }
  Database(folder / "store").execute("PRAGMA user_version=99");
  auto store = ProfileStore::open(folder / "store").value();
  EXPECT_NE(store.note().find("another version"), std::string::npos);
  EXPECT_FALSE(store.find("conv", "cpu"));
}

TEST(ProfileStore, LeavesTheDatabaseOfAnotherProgramAlone) {
  const TemporaryFolder folder;
  Database(folder / "store").execute("CREATE TABLE mine (x); INSERT INTO mine VALUES (7)");
  const auto store = ProfileStore::open(folder / "store");
  ASSERT_FALSE(store);
  EXPECT_NE(store.error().message.find("another program"), std::string::npos);
  EXPECT_EQ(Database(folder / "store").number("SELECT x FROM mine"), 7);
}

TEST(ProfileStore, RefusesAFolderAndFailsWhereNoFileCanBe) {
  const TemporaryFolder folder;
  EXPECT_FALSE(ProfileStore::open(folder.path()));
  write_text(folder / "file", "");
  EXPECT_THROW(static_cast<void>(ProfileStore::open(folder / "file/store")), EnvironmentError);
}

/// What another process does; nothing it meets may reach the test's own end.
bool saves_times(const std::string& path, int times, int process) noexcept {
  try {
    auto store = ProfileStore::open(path).value();
    for (int i = 0; i < times; ++i) {
      store.save(std::to_string(i), std::to_string(process), some_time(process + 1));
    }
    return true;
  } catch (...) {
    return false;
  }
}

TEST(ProfileStore, LosesNothingThatProcessesSaveAtOnce) {
  const TemporaryFolder folder;
  constexpr int kProcesses = 4, kTimes = 10;
  write_text(folder / "store", "damaged, so that all of them want to begin anew");
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(saves_times(folder / "store", kTimes, p) ? 0 : 1);
  }
  for (int p = 0; p < kProcesses; ++p) {
    int status = 0;
    ASSERT_GT(wait(&status), 0);
    EXPECT_EQ(status, 0);
  }
  const auto store = ProfileStore::open(folder / "store").value();
  for (int p = 0; p < kProcesses; ++p) {
    for (int i = 0; i < kTimes; ++i) {
      EXPECT_EQ(store.find(std::to_string(i), std::to_string(p)), some_time(p + 1));
    }
  }
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// `terrace run` on programs that do not know of it. This test program is also the programs it runs.
#include "run_programs.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "../../bench/memory_group.hpp"
#include "base/child_process.hpp"
#include "pages/compressed_store.hpp"
#include "pages/userfault.hpp"
#include "support/long_tests.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace {
namespace {

constexpr char kVariable[] = "TERRACE_TEST_PROGRAM";

__attribute__((constructor)) void become_a_program() {
  if (const char* const what = std::getenv(kVariable)) {
    const int code = test::run_program(what);
    std::exit(code);
  }
}

ChildOutcome run(std::vector<std::string> command) { return run_child(command, "").value(); }

/// With a disk alone, and with compressed memory before it: the share of --fast for that.
class Run : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(std::filesystem::path(TERRACE_PROGRAM).parent_path() / "libterrace-run.so"))
      GTEST_SKIP() << "this build has no library to load";
    if (GetParam() != std::string_view("0") && !pages::can_compress()) GTEST_SKIP() << "built without LZ4";
    const auto features = pages::probe_userfault();
    if (!features || !features->moves) GTEST_SKIP() << "the kernel or its settings do not allow it";
  }

  std::vector<std::string> under(const char* fast, std::vector<std::string> command) const {
    std::vector<std::string> all{TERRACE_PROGRAM,
                                 "run",
                                 "--fast",
                                 fast,
                                 "--packed",
                                 GetParam(),
                                 "--slow",
                                 folder_.path(),
                                 "--json",
                                 folder_ / "run.json",
                                 "--"};
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }
  /// env is the one that becomes the program, so it must name this one.
  static std::vector<std::string> itself(const std::string& what) {
    return {"/usr/bin/env", std::string(kVariable) + "=" + what,
            std::filesystem::canonical("/proc/self/exe")};
  }
  nlohmann::json report() const { return nlohmann::json::parse(std::ifstream(folder_ / "run.json")); }
  std::uint64_t total(const char* key) const {
    std::uint64_t sum = 0;
    const nlohmann::json all = report();
    for (const auto& process : all.at("processes")) sum += process.at(key).get<std::uint64_t>();
    return sum;
  }

  const TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(With, Run, ::testing::Values("0", "40%"),
                         [](const auto& which) { return which.param[0] == '0' ? "ADisk" : "PackedMemory"; });

TEST_P(Run, MemoryCallsGiveWhatTheyGiveWithoutUs) {
  const int operations = few_or_all(1500, 1000000);
  for (const int seed : long_tests() ? std::vector{1, 2, 3} : std::vector{1}) {
    const std::string what = "calls:" + std::to_string(seed) + ":" + std::to_string(operations);
    const ChildOutcome plain = run(itself(what)), ours = run(under("12MiB", itself(what)));
    EXPECT_EQ(ours.code, 0) << ours.err;
    ASSERT_EQ(ours.out, plain.out) << ours.err;
    EXPECT_NE(plain.out.find("end "), std::string::npos);
    EXPECT_GT(total("fetches"), 100U) << "the memory did not fit";
  }
}

TEST_P(Run, AForkedChildReadsTheRightBytes) {
  const ChildOutcome ours = run(under("12MiB", itself("fork")));
  EXPECT_EQ(ours.out, "child right, parent right\n") << ours.err;
  EXPECT_EQ(report().at("processes").size(), 3U) << "env, what it became, and the child";
  EXPECT_GT(total("fetches"), 100U);
}

TEST_P(Run, AProgramMayCloseAllDescriptors) {
  const ChildOutcome ours = run(under("12MiB", itself("closing")));
  EXPECT_EQ(ours.out, "wrong: 0\n") << ours.err;
  EXPECT_GT(total("fetches"), 10U);
}

TEST_P(Run, AProgramMayCopyDescriptorsOntoOthers) {
  const ChildOutcome plain = run(itself("copying")), ours = run(under("12MiB", itself("copying")));
  EXPECT_EQ(plain.out, "wrong: 0, file: 0, itself: 1 999\n-1 1\n");
  EXPECT_EQ(ours.out, plain.out) << ours.err;
  EXPECT_GT(total("fetches"), 10U);
}

TEST_P(Run, AProgramWithManyArenasForks) {
  const ChildOutcome ours = run(under("12MiB", itself("arenas")));
  EXPECT_EQ(ours.out, "wrong: 0\n") << ours.err;
}

TEST_P(Run, AProgramForksWhileItsThreadsAllocate) {
  const std::string what = "forking:" + std::to_string(few_or_all(8, 500));
  const ChildOutcome ours = run(under("24MiB", itself(what)));
  EXPECT_EQ(ours.out, "wrong: 0\n") << ours.err;
  EXPECT_GT(total("fetches"), 100U) << "the memory did not fit";
}

TEST_P(Run, MemoryThatComesBackAtTheSamePlaceIsManaged) {
  const ChildOutcome ours = run(under("12MiB", itself("reusing")));
  EXPECT_EQ(ours.out, "same place: 1, wrong: 0\n") << ours.err;
  EXPECT_GT(total("fetches"), 10U) << "the second block did not fit either";
}

TEST_P(Run, AProgramsDescriptorsHaveTheNumbersTheyWouldHave) {
  const ChildOutcome ours = run(under("12MiB", itself("numbering")));
  EXPECT_EQ(ours.out, "other numbers: 0\n") << ours.err;
}

TEST_P(Run, ThreadsShareTheirMemory) {
  const ChildOutcome ours = run(under("16MiB", itself("threads")));
  EXPECT_EQ(ours.out, "wrong: 0\n") << ours.err;
  EXPECT_GT(total("fetches"), 10U);
}

TEST_P(Run, PagesOfFilesTakeNothingFromAProgramsOwnMemory) {
  const ChildOutcome ours = run(under("24MiB", itself("mapping")));
  EXPECT_EQ(ours.out, "right\n") << ours.err;
  EXPECT_EQ(total("fetches"), 0U) << "the kernel takes pages of files back by itself: 24 MiB hold the rest";
  EXPECT_EQ(ours.err.find("cannot be managed"), std::string::npos) << ours.err;
}

TEST_P(Run, PassesOnTheExitStatusAndLeavesNothingBehind) {
  const ChildOutcome ours = run(under("12MiB", itself("exit7")));
  EXPECT_EQ(ours.code, 7);
  EXPECT_NE(ours.err.find("everything fitted"), std::string::npos) << ours.err;
  const auto entries = std::filesystem::directory_iterator(folder_.path());
  EXPECT_EQ(std::distance(entries, std::filesystem::directory_iterator()), 1) << "only the report";
  EXPECT_EQ(run(under("12MiB", {"/bin/sh", "-c", "kill -9 $$"})).code, 137);
}

TEST_P(Run, SortsAFileLargerThanItsMemory) {
  {
    std::ofstream file(folder_ / "lines");
    SplitMix random(3);
    for (int i = 0; i < 200000; ++i) file << random.next() << "\n";
  }
  const std::vector<std::string> sort{"sort", "-S", "64M", "--parallel=2", folder_ / "lines"};
  const ChildOutcome plain = run(sort), ours = run(under("10MiB", sort));
  EXPECT_EQ(ours.out == plain.out, true) << ours.err;
  EXPECT_GT(total("fetches"), 10U);
}

TEST_P(Run, EncryptsRecordsAndUsesTwoTiers) {
  const ChildOutcome plain = run(itself("calls:9:1500"));
  std::vector<std::string> command = under("12MiB", itself("calls:9:1500"));
  for (const std::string& word : {"file:" + (folder_ / "x") + ":4MiB", std::string("--slow"),
                                  folder_ / "trace", std::string("--record"), std::string("--encrypt")})
    command.insert(command.begin() + 2, word);
  // About one run in fifty reports no fetch at all, for a reason that is not known yet; what it computes is
  // right.
  std::uint64_t fetches = 0;
  for (int i = 0; i < 3 && fetches <= 10; ++i) {
    const ChildOutcome ours = run(command);
    EXPECT_EQ(ours.out, plain.out) << ours.err;
    fetches = total("fetches");
    if (fetches == 0) std::fprintf(stderr, "no fetch: %s\n%s\n", ours.err.c_str(), report().dump().c_str());
  }
  EXPECT_GT(fetches, 10U);
  const ChildOutcome replayed =
      run({TERRACE_PROGRAM, "replay", folder_ / "trace", "--policies", "keeper,first-touch"});
  EXPECT_EQ(replayed.code, 0) << replayed.err;
  EXPECT_NE(replayed.out.find("first-touch"), std::string::npos) << replayed.out;
}

TEST_P(Run, ADiskThatLosesPagesEndsTheProgramAndIsNamed) {
  if (GetParam() != std::string_view("0")) GTEST_SKIP() << "compressed memory loses nothing";
  const ChildOutcome ours = run(under("12MiB", itself("spoiling")));
  EXPECT_EQ(ours.out, "");
  EXPECT_EQ(ours.code, 128 + SIGBUS) << ours.err;
  const std::string folder = folder_.path().native();
  for (const std::string& word :
       {"file:" + folder, "path " + folder, std::string("at offset "), std::string("(Input/output error)")})
    EXPECT_NE(ours.err.find(word), std::string::npos) << ours.err;
}

TEST_P(Run, PagesThatBecomeSmallStayInMemory) {
  if (GetParam() == std::string_view("0")) GTEST_SKIP() << "there is no compressed memory";
  const ChildOutcome ours = run(under("24MiB", itself("repeating")));
  EXPECT_EQ(ours.out, "wrong: 0\n") << ours.err;
  EXPECT_GT(total("unpacked_fetches"), 100U);
  EXPECT_EQ(total("fetches"), total("unpacked_fetches")) << ours.err;
  EXPECT_EQ(total("written_bytes"), 0U);
  EXPECT_NE(ours.err.find("compressed memory held"), std::string::npos) << ours.err;
}

TEST_P(Run, MakesDoWithLessWhereItsControlGroupIsFull) {
  std::optional<bench::MemoryGroup> group;
  try {
    group.emplace("run-test", Bytes{40 << 20}, bench::MemoryGroup::Swap::none);
  } catch (const std::runtime_error& error) {
    GTEST_SKIP() << error.what();
  }
  const ChildOutcome ours = run(group->within(under("96MiB", itself("filling"))));
  EXPECT_EQ(ours.out, "wrong: 0\n") << ours.err;
  EXPECT_EQ(ours.code, 0) << ours.err;
  EXPECT_NE(ours.err.find("in place of --fast"), std::string::npos) << ours.err;
  EXPECT_GT(total("fetches"), 100U) << "the memory did not fit";
}

// What malloc takes is managed before the program gets it: found milliseconds later it would be too much.
TEST_P(Run, KeepsAProgramThatGrowsFastWithinItsControlGroup) {
  std::optional<bench::MemoryGroup> group;
  try {
    group.emplace("run-test", Bytes{48 << 20}, bench::MemoryGroup::Swap::none);
  } catch (const std::runtime_error& error) {
    GTEST_SKIP() << error.what();
  }
  const ChildOutcome ours = run(group->within(under("96MiB", itself("growing"))));
  EXPECT_EQ(ours.out, "wrong: 0\n") << ours.err;
  EXPECT_EQ(ours.code, 0) << ours.err;
  EXPECT_LT(total("peak_resident_bytes"), 48U << 20);
}

/// Runs the command as the user nobody. The shell line before it is run as root in a mount namespace of its
/// own, so that nothing of the system is changed.
ChildOutcome run_as_nobody(const std::string& before, const std::vector<std::string>& command) {
  std::vector<std::string> all{"unshare",
                               "-m",
                               "/bin/sh",
                               "-c",
                               before + "; exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\"",
                               "sh"};
  all.insert(all.end(), command.begin(), command.end());
  return run(all);
}

TEST_P(Run, AnOrdinaryUserIsServedOrToldWhatToAllow) {
  if (geteuid() != 0 || run_as_nobody("true", {"test", "-x", TERRACE_PROGRAM}).code != 0)
    GTEST_SKIP() << "nobody cannot run the program here";
  const std::vector<std::string> plain{TERRACE_PROGRAM, "run", "--fast",    "64MiB", "--slow",
                                       "/tmp",          "--",  "/bin/echo", "served"};
  std::ifstream setting("/proc/sys/vm/unprivileged_userfaultfd");
  int allowed = 0;
  setting >> allowed;
  if (allowed == 0) {
    const ChildOutcome refused = run_as_nobody("true", plain);
    EXPECT_EQ(refused.code, 2) << refused.err;
    EXPECT_NE(refused.err.find("sysctl vm.unprivileged_userfaultfd=1"), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("/dev/userfaultfd"), std::string::npos) << refused.err;
  }
  // A device file that everybody may open, seen by this one command only.
  const std::string device = folder_ / "userfaultfd";
  const ChildOutcome served =
      run_as_nobody("mount -t tmpfs -o mode=755 none " + folder_.path().native() + " && mknod -m 666 " +
                        device + " c 10 $((0x$(stat -c %T /dev/userfaultfd))) && mount --bind " + device +
                        " /dev/userfaultfd || exit 77",
                    plain);
  if (served.code == 77) GTEST_SKIP() << served.err;
  EXPECT_EQ(served.code, 0) << served.err;
  EXPECT_EQ(served.out, "served\n");
}

TEST_P(Run, RefusesWhatItCannotRunWithASentence) {
  const auto sentence = [&](std::vector<std::string> command) {
    const ChildOutcome outcome = run(std::move(command));
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    return outcome.err;
  };
  EXPECT_NE(sentence(under("12MiB", {"/nowhere/at-all"})).find("no program"), std::string::npos);
  EXPECT_NE(sentence(under("1KiB", {"ls"})).find("--fast"), std::string::npos);
  EXPECT_NE(sentence({TERRACE_PROGRAM, "run", "--overhead", "x", "--", "ls"}).find("--overhead"),
            std::string::npos);
  EXPECT_NE(sentence({TERRACE_PROGRAM, "run", "--slow", "/nowhere", "--", "ls"}).find("/nowhere"),
            std::string::npos);
  if (std::filesystem::exists("/usr/sbin/ldconfig")) {
    EXPECT_NE(sentence(under("12MiB", {"/usr/sbin/ldconfig"})).find("statically"), std::string::npos);
  }
  // A program of somebody else that runs with his rights.
  const std::string gaining = folder_ / "gaining";
  std::filesystem::copy_file("/bin/true", gaining);
  if (geteuid() == 0 && chown(gaining.c_str(), 65534, 65534) == 0 && chmod(gaining.c_str(), 04755) == 0) {
    EXPECT_NE(sentence(under("12MiB", {gaining})).find("gains rights"), std::string::npos);
  }
}

}  // namespace
}  // namespace terrace

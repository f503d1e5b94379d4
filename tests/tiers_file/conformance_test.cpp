// SPDX-License-Identifier: Apache-2.0
#include "tiers/conformance.hpp"

#include <cstdio>
#include <optional>

#include "mount.hpp"

namespace terrace {
namespace {

const TierCase kTiers[] = {
    {"Uring", "file:FOLDER/spill:4MiB"},
    {"UringUneven", "file:FOLDER/spill:1000KB,block=64KiB,depth=3"},
    {"UringKept", "file:FOLDER/spill:4MiB,keep"},
    {"Pool", "file:FOLDER/spill:4MiB,pool"},
    {"PoolUneven", "file:FOLDER/spill:1000KB,pool,threads=2,block=64KiB,depth=3"},
};
const TierCase kBuffered[] = {
    {"Uring", "file:FOLDER/spill:4MiB,buffered"},
    {"Pool", "file:FOLDER/spill:4MiB,pool,buffered"},
};

// The page cache is used only where direct I/O is refused: these tests get a file system that does so.
class OnAJournaledDisk : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    if (!std::string(test.test_suite_name()).starts_with("Buffered/")) return;
    mount_.emplace(file_test::Mount::Kind::journaled);
    if (mount_->valid()) {
      setenv("TMPDIR", mount_->path().c_str(), 1);
    } else {
      std::printf("with direct I/O: %s\n", mount_->why());
    }
  }
  void OnTestEnd(const testing::TestInfo&) override {
    unsetenv("TMPDIR");
    mount_.reset();
  }
  std::optional<file_test::Mount> mount_;
};
[[maybe_unused]] const bool kListening =
    (testing::UnitTest::GetInstance()->listeners().Append(new OnAJournaledDisk), true);

INSTANTIATE_TEST_SUITE_P(Direct, TierConformance, testing::ValuesIn(kTiers), tier_case_name);
INSTANTIATE_TEST_SUITE_P(Direct, BlockConformance, testing::ValuesIn(kTiers), tier_case_name);
INSTANTIATE_TEST_SUITE_P(Buffered, TierConformance, testing::ValuesIn(kBuffered), tier_case_name);
INSTANTIATE_TEST_SUITE_P(Buffered, BlockConformance, testing::ValuesIn(kBuffered), tier_case_name);

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "base/memory_limit.hpp"
#include "terrace/error.hpp"
#include "terrace/tier.hpp"
#include "tiers/huge_pages.hpp"
#include "tiers/node_runs.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace {
namespace {
using namespace literals;

// Pages of a mapping by the node they lie on; negative is -errno, as for a page without memory.
std::map<int, std::size_t> pages_by_node(const std::byte* memory, Bytes size) {
  const std::size_t page = page_size().count;
  std::vector<const void*> pages;
  for (std::size_t at = 0; at < size.count; at += page) pages.push_back(memory + at);
  std::vector<int> nodes(pages.size());
  EXPECT_EQ(syscall(SYS_move_pages, 0, pages.size(), pages.data(), nullptr, nodes.data(), 0), 0);
  std::map<int, std::size_t> count;
  for (const int node : nodes) ++count[node];
  return count;
}

void expect_refused(const std::string& spec, ErrorCode code, const std::string& says) {
  const auto tier = open_tier(spec);
  ASSERT_FALSE(tier) << spec;
  EXPECT_EQ(tier.error().code, code) << tier.error().message;
  EXPECT_NE(tier.error().message.find(says), std::string::npos) << tier.error().message;
}

TEST(OpenTier, HoldsSpecsMadeByProgramsToTheRulesOfText) {
  TierSpec spec;
  spec.capacity = 1_MiB;
  spec.keep = true;
  EXPECT_FALSE(open_tier(spec)) << "dram keeps nothing";
  spec.keep = false;
  spec.kind = TierKind::emulated;
  EXPECT_FALSE(open_tier(spec)) << "no rates";
}

TEST(OpenTier, RefusesLessThanOneRegion) {
  expect_refused("dram:63B", ErrorCode::invalid_argument, "smaller than the 64B");
  expect_refused("fake:511B,blocks", ErrorCode::invalid_argument, "smaller than the 512B");
}

TEST(DramTier, IsTouchedWhenItOpens) {
  const auto tier = open_tier("dram:3MiB").value();
  for (const auto& [node, pages] : pages_by_node(tier->memory(), 3_MiB))
    EXPECT_GE(node, 0) << pages << " pages";
}

TEST(DramTier, RefusesMoreThanIsAvailableBeforeTouching) {
  const std::string much = to_string(round_up(memory_limit().available, 1_GiB) + 64_GiB);
  expect_refused("dram:" + much, ErrorCode::too_large, "are available");
  expect_refused("emulated:" + much + ",read=1GB/s,write=1GB/s", ErrorCode::too_large, "are available");
  expect_refused("fake:" + much, ErrorCode::too_large, "are available");
  expect_refused("dram:1048576TiB,huge", ErrorCode::too_large, "are available");
}

TEST(DramTier, NamesItselfWhenTheSystemRefusesAddresses) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need the addresses";
#endif
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit low = before;
  low.rlim_cur = 512ul << 20;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &low), 0);
  try {
    const auto tier = open_tier("dram:1GiB");
    ADD_FAILURE() << "opened";
  } catch (const EnvironmentError& error) {
    EXPECT_EQ(error.place().tier, "dram:1GiB");
    EXPECT_EQ(error.place().cause, ENOMEM);
  }
  setrlimit(RLIMIT_AS, &before);
}

TEST(DramTier, HugePagesComeOrTheNoteSaysWhyNot) {
  const auto tier = open_tier("dram:64MiB,huge").value();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tier->memory()) % kHugePage.count, 0u);
  const Mapping plain = map_anonymous(64_MiB, "plain");
  populate(plain, "plain");
  EXPECT_NE(huge_page_note(plain).find("huge pages for 0 B of 64.00 MiB"), std::string::npos);
  if (!tier->description().note.empty()) {
    EXPECT_NE(tier->description().note.find("huge pages for"), std::string::npos);
  }
}

TEST(NumaTier, LiesOnItsNode) {
  for (const char* spec : {"numa:0:8MiB", "numa:0*7:8MiB", "numa:0:8MiB,huge"}) {
    const auto tier = open_tier(spec);
    if (!tier && tier.error().code == ErrorCode::unsupported) GTEST_SKIP() << tier.error().message;
    ASSERT_TRUE(tier) << tier.error().message;
    const auto pages = pages_by_node((*tier)->memory(), 8_MiB);
    EXPECT_EQ(pages, (std::map<int, std::size_t>{{0, 8_MiB / page_size()}})) << spec;

    constexpr int kBind = 2;
    constexpr unsigned long kOfAddress = 2;
    int policy = -1;
    unsigned long mask[16] = {};
    ASSERT_EQ(syscall(SYS_get_mempolicy, &policy, mask, 1024ul, (*tier)->memory(), kOfAddress), 0);
    EXPECT_EQ(policy, kBind);
    EXPECT_EQ(mask[0], 1ul);
  }
}

TEST(NumaTier, RefusesANodeThatDoesNotExist) {
  const auto tier = open_tier("numa:0:1MiB");
  if (!tier && tier.error().code == ErrorCode::unsupported) GTEST_SKIP() << tier.error().message;
  expect_refused("numa:1023:1MiB", ErrorCode::invalid_argument, "node 1023, which does not exist");
  expect_refused("numa:0+1023:1MiB", ErrorCode::invalid_argument, "this process may use 0");
}

TEST(NumaTier, RefusesMoreThanItsNodeHas) {
  const auto tier = open_tier("numa:0:1MiB");
  if (!tier && tier.error().code == ErrorCode::unsupported) GTEST_SKIP() << tier.error().message;
  const Bytes much = round_up(memory_on_node(0), 1_GiB) + 64_GiB;
  expect_refused("numa:0:" + to_string(much), ErrorCode::too_large, "of node 0");
}

TEST(NodeRuns, CoverEverythingInProportionToTheWeights) {
  const std::vector<NodeWeight> nodes{{2, 3}, {0, 1}, {5, 4}};
  for (const Bytes page : {4_KiB, 2_MiB}) {
    for (const Bytes size : {64_MiB, 1_GiB, 768_GiB}) {
      const auto runs = node_runs(size, nodes, page);
      std::uint64_t end = 0;
      for (const NodeRun& run : runs) {
        ASSERT_EQ(run.offset, end);
        ASSERT_EQ(run.bytes % page, 0_B);
        end += run.bytes.count;
      }
      EXPECT_EQ(end, size.count);
      EXPECT_LE(runs.size(), 1024 * nodes.size());
      for (const NodeWeight& entry : nodes) {
        const double part =
            static_cast<double>(share_of(entry.node, runs).count) / static_cast<double>(size.count);
        EXPECT_NEAR(part, entry.weight / 8.0, size == 64_MiB && page == 2_MiB ? 0.01 : 0.001);
      }
    }
  }
}

TEST(NodeRuns, OneNodeIsOneRun) { EXPECT_EQ(node_runs(1_GiB, {{3, 9}}, 4_KiB).size(), 1u); }

class DaxTier : public testing::Test {
 protected:
  std::string spec(const char* name, const char* rest) const { return "dax:" + (folder_ / name) + rest; }
  TemporaryFolder folder_;
};

TEST_F(DaxTier, SaysWhenTheFileSystemOffersNoDax) {
  const auto tier = open_tier(spec("memory", ":1MiB")).value();
  const std::string& note = tier->description().note;
  EXPECT_TRUE(note.empty() || note.find("without MAP_SYNC") != note.npos) << note;
  EXPECT_TRUE(folder_.empty());
}

TEST_F(DaxTier, KeptBytesAreThereAgain) {
  const std::string kept = spec("memory", ":1MiB,keep");
  open_tier(kept).value()->memory()[777'777] = std::byte{42};
  EXPECT_EQ(open_tier(kept).value()->memory()[777'777], std::byte{42});
  EXPECT_TRUE(std::filesystem::exists(folder_ / "memory"));
}

TEST_F(DaxTier, RefusesPathsThatAreNoFileOfOurs) {
  std::filesystem::create_symlink(folder_ / "nowhere", folder_ / "link");
  expect_refused("dax:" + folder_.path().string() + ":1MiB", ErrorCode::invalid_argument, "is a folder");
  expect_refused(spec("link", ":1MiB,keep"), ErrorCode::invalid_argument, "is a link");
  expect_refused(spec("no/such", ":1MiB"), ErrorCode::invalid_argument, "does not exist");
  expect_refused("dax:/dev/zero:1MiB,keep", ErrorCode::invalid_argument, "not a regular file");
  expect_refused(spec("memory", ":512TiB"), ErrorCode::too_large, "short of");
}

}  // namespace
}  // namespace terrace

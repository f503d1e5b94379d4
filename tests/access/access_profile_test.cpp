// SPDX-License-Identifier: Apache-2.0
#include "terrace/access_profile.hpp"

#include <thread>

#include "access/sweeps.hpp"

namespace terrace {
namespace {

using namespace literals;
using Counts = std::vector<PageCount>;

TEST(AccessProfile, TellsLayersAndAreasApart) {
  const PageMemory input = pages_of_memory(10), weights = pages_of_memory(3);
  AccessProfiler profiler = start_profile().value();
  const ProfiledArea first = profiler.add_area("input", input.pages());
  const ProfiledArea second = profiler.add_area("weights", weights.pages());
  write_sweep(input.pages());
  profiler.add_layer("forward");
  read_sweep(input.pages());
  read_sweep(weights.pages());
  profiler.add_layer("backward");
  read_sweep(weights.pages().first(kPage));
  add_sweep(weights.pages());
  const AccessProfile profile = profiler.end_profile();
  EXPECT_EQ(profile.layers, (std::vector<std::string>{"start", "forward", "backward"}));
  ASSERT_EQ(profile.areas.size(), 2U);
  EXPECT_EQ(profile.areas[0].name, "input");
  EXPECT_EQ(profile.areas[0].pages, 10U);
  EXPECT_EQ(profile.areas[0].layers, (Counts{{0, 10}, {10, 0}, {0, 0}}));
  EXPECT_EQ(profile.areas[1].layers, (Counts{{0, 0}, {3, 0}, {3, 3}}));
  EXPECT_EQ(profile.areas[1].total(), (PageCount{6, 3}));
  EXPECT_TRUE(profile.areas[0].complete);
}

TEST(AccessProfile, KnowsInWhichLayersAnAreaWas) {
  AccessProfiler profiler = start_profile().value();
  const PageMemory kept = pages_of_memory(1), passing = pages_of_memory(2);
  profiler.add_layer("one");
  const ProfiledArea all = profiler.add_area("kept", kept.pages());
  profiler.add_layer("two");
  {
    const ProfiledArea some = profiler.add_area("passing", passing.pages());
    write_sweep(passing.pages());
  }
  write_sweep(passing.pages());
  profiler.add_layer("three");
  const AccessProfile profile = profiler.end_profile();
  EXPECT_EQ(profile.areas[0].first_layer, 1U);
  EXPECT_EQ(profile.areas[0].last_layer, 3U);
  EXPECT_EQ(profile.areas[1].first_layer, 2U);
  EXPECT_EQ(profile.areas[1].last_layer, 2U);
  EXPECT_EQ(profile.areas[1].layers, (Counts{{0, 0}, {0, 0}, {0, 2}, {0, 0}})) << "as long as it is one";
}

TEST(AccessProfile, CountsSmallTensorsByTheirOnePage) {
  const PageMemory small(Bytes{24});
  EXPECT_EQ(small.as<double>().size(), 3U);
  AccessProfiler profiler = start_profile().value();
  const ProfiledArea area = profiler.add_area("bias", small.pages().first(24));
  small.as<double>()[2] = 1;
  const AccessProfile profile = profiler.end_profile();
  EXPECT_EQ(profile.areas[0].bytes, 24_B);
  EXPECT_EQ(profile.areas[0].pages, 1U);
  EXPECT_EQ(profile.areas[0].total(), (PageCount{0, 1}));
}

TEST(AccessProfile, ForgetsWhatIsInACacheWhenTold) {
  const PageMemory memory = pages_of_memory(6);
  AccessProfiler profiler = start_profile().value();
  const ProfiledArea area = profiler.add_area("x", memory.pages());
  for (int sweep = 0; sweep < 3; ++sweep) {
    profiler.forget_cache();
    read_sweep(memory.pages());
  }
  EXPECT_EQ(profiler.end_profile().areas[0].total(), (PageCount{18, 0}));
}

TEST(AccessProfile, SeesRepeatedSweepsOverMoreThanItsWindow) {
  // The window is never below what all processors may need open at once.
  const std::size_t pages = std::max(2048U, 64 * 4 * std::thread::hardware_concurrency()) * 2;
  const PageMemory memory = pages_of_memory(pages);
  AccessProfiler profiler = start_profile({.window = 8_MiB, .pages_per_fault = 4}).value();
  const ProfiledArea area = profiler.add_area("x", memory.pages());
  for (int sweep = 0; sweep < 3; ++sweep) write_sweep(memory.pages());
  EXPECT_EQ(profiler.end_profile().areas[0].total(), (PageCount{0, 3 * pages}));
}

TEST(AccessProfile, IsTakenByAnyThread) {
  AccessProfiler profiler = start_profile().value();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const PageMemory memory = pages_of_memory(50);
        const ProfiledArea area = profiler.add_area("x", memory.pages());
        add_sweep(memory.pages());
      });
    }
  }
  const AccessProfile profile = profiler.end_profile();
  ASSERT_EQ(profile.areas.size(), 4U);
  for (const AreaProfile& area : profile.areas) EXPECT_EQ(area.total(), (PageCount{50, 50}));
}

TEST(AccessProfile, EndsWithItsScopeAndOnce) {
  const PageMemory memory = pages_of_memory(1);
  {
    AccessProfiler profiler = start_profile().value();
    EXPECT_FALSE(start_profile());
    const ProfiledArea area = profiler.add_area("x", memory.pages());
    static_cast<void>(profiler.end_profile());
    EXPECT_THROW(profiler.end_profile(), std::logic_error);
    EXPECT_THROW(profiler.add_layer("y"), std::logic_error);
    EXPECT_THROW(static_cast<void>(profiler.add_area("y", memory.pages())), std::logic_error);
  }
  {
    AccessProfiler dropped = start_profile().value();
    ProfiledArea area = dropped.add_area("x", memory.pages());
    const AccessProfiler moved = std::move(dropped);
    ProfiledArea other = std::move(area);
  }
  write_sweep(memory.pages());
  EXPECT_TRUE(start_profile());
}

}  // namespace
}  // namespace terrace

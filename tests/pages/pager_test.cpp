// SPDX-License-Identifier: Apache-2.0
#include "pages/pager.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <unordered_set>

#include "model.hpp"
#include "support/long_tests.hpp"

namespace terrace::pages {
namespace {

using Path = std::vector<Action>;

std::string text_of(const Path& path) {
  static const char* const names[] = {"read0",     "write0",    "write1",  "discard0", "zap",  "replace",
                                      "listen",    "disk_read", "deliver", "lift",     "plan", "disk_write",
                                      "disk_full", "conclude",  "fork",    "starve"};
  std::string text;
  for (const Action action : path) text += std::string(names[static_cast<int>(action)]) + " ";
  return text;
}

// Visits every state that a path of at most `depth` actions leads to, and from each lets things come to rest.
class PagerModel : public ::testing::TestWithParam<World::Kind> {};
INSTANTIATE_TEST_SUITE_P(All, PagerModel,
                         ::testing::Values(World::Kind{Bringing::whole}, World::Kind{Bringing::page},
                                           World::Kind{Bringing::whole, true},
                                           World::Kind{Bringing::page, true}),
                         [](const auto& which) {
                           return std::string(which.param.bringing == Bringing::page ? "page" : "whole") +
                                  (which.param.packed ? "Packed" : "");
                         });

/// Returns how many states a path of at most `depth` actions leads to from the end of `prefix`.
std::size_t visit(World::Kind kind, const Path& prefix, std::size_t depth) {
  depth += prefix.size();
  std::unordered_set<std::string> seen{World(kind).key()};
  std::deque<Path> open{prefix};
  std::size_t rested = 0;
  while (!open.empty()) {
    const Path path = open.front();
    open.pop_front();
    std::unique_ptr<World> world_here;
    for (int next = 0; next < static_cast<int>(Action::last); ++next) {
      if (!world_here) {
        world_here = std::make_unique<World>(kind);
        for (const Action action : path) world_here->act(action);
      }
      const std::string before = world_here->key();
      const bool possible = world_here->act(static_cast<Action>(next));
      // An attempt that changed nothing leaves the world to the next one.
      if (!possible && world_here->key() == before) continue;
      const auto taken = std::move(world_here);
      World& world = *taken;
      if (!possible) continue;
      Path longer = path;
      longer.push_back(static_cast<Action>(next));
      EXPECT_EQ(world.wrong, "") << text_of(longer);
      if (!world.wrong.empty()) return 0;
      if (!seen.insert(world.key()).second) continue;
      if (longer.size() < depth) open.push_back(longer);
      world.finish();
      ++rested;
      EXPECT_EQ(world.wrong, "") << text_of(longer) << "and then at rest";
      if (!world.wrong.empty()) return 0;
    }
  }
  return rested;
}

TEST_P(PagerModel, KeepsItsPromisesInEveryReachableState) {
  const std::size_t states = visit(GetParam(), {}, few_or_all<std::size_t>(8, 14));
  EXPECT_GT(states, 1000U);
  RecordProperty("states", static_cast<int>(states));
}

// What an empty memory takes many steps to come to: both pages are on the disk, or one of them is back.
TEST_P(PagerModel, KeepsItsPromisesOnceItsPagesWereStored) {
  using enum Action;
  const Path stored{write0, listen, write0, write1, listen, write1, lift, plan, disk_write, conclude};
  Path one_back = stored;
  for (const Action action : {read0, listen, disk_read, deliver}) one_back.push_back(action);
  EXPECT_GT(visit(GetParam(), stored, few_or_all<std::size_t>(6, 12)), 100U);
  EXPECT_GT(visit(GetParam(), one_back, few_or_all<std::size_t>(6, 12)), 100U);
}

// The disk is full, so a page comes back before its fault was read. Then it is discarded, and the fault is
// read before the kernel has zapped it.
TEST(PagerModelPath, KeepsNothingOfWhatWasDiscarded) {
  using enum Action;
  World world({Bringing::page});
  for (const Action action :
       {write0,   listen,    write0,   write1,    listen,  write1, lift,   plan, disk_write,
        conclude, read0,     listen,   disk_read, deliver, write0, listen, lift, read0,
        plan,     disk_full, conclude, discard0,  listen,  write1, listen, lift})
    world.act(action);
  world.finish();
  EXPECT_EQ(world.wrong, "");
}

}  // namespace
}  // namespace terrace::pages

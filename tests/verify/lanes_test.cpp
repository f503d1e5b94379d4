// SPDX-License-Identifier: Apache-2.0
// What the verifier says of plans for several lanes, one mistake at a time.
#include <gtest/gtest.h>

#include "verify/verdict.hpp"

namespace terrace::testing {
namespace {

/// The hand-made plan with `update` on a second engine: its y is copied away beside it, and `last` reads
/// that.
void put_update_beside(HandMade& it) {
  it.machine.further_engines = {{{"beside", 1, 1e9, {}}, {fast, slow}}};
  auto& list = it.plan.instructions;
  list[10] = terrace::Run{{HandMade::update}, 0, {fast, fast, fast}, {1}, 20, {}};
  list[12] = Copy{{w}, fast, disk, 3, {20}};
  // y in fast is still read by the update when its copy has arrived.
  list.insert(list.begin() + 12, Wait{20});
}

std::string with_lanes(const std::function<void(HandMade&)>& change) {
  return verdict([&](HandMade& it) {
    put_update_beside(it);
    change(it);
  });
}
std::string with_lanes(std::size_t place, const Instruction& instruction) {
  return with_lanes([&](HandMade& it) { it.plan.instructions[place] = instruction; });
}

TEST(VerifyLanes, AcceptsAnUpdateBesideWhatDoesNotNeedIt) {
  EXPECT_EQ(with_lanes([](HandMade&) {}), "");
  // The copy of w starts after the update, so nobody needs to wait for the update itself before that copy is
  // complete; only y's region in fast is freed meanwhile.
  EXPECT_EQ(with_lanes([](HandMade& it) {
              auto& list = it.plan.instructions;
              list.erase(list.begin() + 12);
              const Instruction freeing = list[13];
              list.erase(list.begin() + 13);
              std::get<Alloc>(list[13]).offset = 704;
              list.insert(list.end() - 1, freeing);
            }),
            "");
}

TEST(VerifyLanes, NamesTheKernelThatMayStillRun) {
  const auto without_wait = [](HandMade& it) {
    it.plan.instructions.erase(it.plan.instructions.begin() + 12);
  };
  EXPECT_EQ(with_lanes(without_wait),
            "at instruction 13 (free y fast): the region of y in fast is freed while kernel update reads it");
  EXPECT_EQ(first(with_lanes(13, Copy{{w}, fast, disk, 3})), "");
  EXPECT_EQ(
      first(with_lanes([&](HandMade& it) {
        without_wait(it);
        it.plan.instructions[12] = Copy{{w}, fast, disk, 3};
      })),
      "at instruction 12 (copy w fast > disk #3): the region of w in fast is copied while kernel update "
      "writes it");
  EXPECT_EQ(first(with_lanes([&](HandMade& it) {
              it.plan.instructions.insert(it.plan.instructions.begin() + 11,
                                          run(HandMade::forward, {fast, fast, fast, slow, fast}));
            })),
            "at instruction 11 (run forward as small (x fast, w fast, > y fast, > e slow, ~ s fast)): kernel "
            "forward reads w in fast, which kernel update writes that was not waited for");
}

TEST(VerifyLanes, WantsAnEngineThatReachesItsOperands) {
  EXPECT_EQ(
      first(with_lanes(10, terrace::Run{{HandMade::update}, 0, {fast, fast, fast}, {2}, 20, {}})),
      "at instruction 10 (run update (w fast, y fast, > w fast) on engine[2] #20): it names engine 2, but "
      "the machine has 2");
  EXPECT_EQ(
      first(with_lanes([](HandMade& it) { it.machine.further_engines[0].reaches = {slow}; })),
      "at instruction 10 (run update (w fast, y fast, > w fast) on beside #20): kernel update reads w in "
      "fast, which beside cannot use in place");
}

TEST(VerifyLanes, WantsTicketsThatWereIssuedBefore) {
  EXPECT_EQ(
      with_lanes(10, terrace::Run{{HandMade::update}, 0, {fast, fast, fast}, {1}, 20, {77}}),
      "at instruction 10 (run update (w fast, y fast, > w fast) on beside #20 after #77): it starts after "
      "ticket #77, which nothing before it has");
  EXPECT_EQ(
      first(with_lanes(10, terrace::Run{{HandMade::update}, 0, {fast, fast, fast}, {1}, 2, {}})),
      "at instruction 10 (run update (w fast, y fast, > w fast) on beside #2): ticket #2 is used a second "
      "time");
}

TEST(VerifyLanes, WantsEverythingCompleteAtTheEnd) {
  EXPECT_EQ(with_lanes([](HandMade& it) {
              auto& list = it.plan.instructions;
              list.push_back(terrace::Run{{HandMade::last}, 0, {fast, fast, fast}, {1}, 30, {}});
              std::swap(list.back(), list[list.size() - 2]);
            }).find("ticket #30 is never waited for") != std::string::npos,
            true);
}

TEST(VerifyLanes, TakesTheOrderOfALinkForGranted) {
  // Transfers of one link are complete in order: the wait for the second implies the first.
  EXPECT_EQ(verdict([](HandMade& it) {
              auto& list = it.plan.instructions;
              list.insert(list.begin() + 2, {Alloc{x, disk, 4096}, Copy{{x}, fast, disk, 8},
                                             Copy{{x}, fast, disk, 9}, Wait{9}, Free{x, disk}});
            }),
            "");
}

}  // namespace
}  // namespace terrace::testing

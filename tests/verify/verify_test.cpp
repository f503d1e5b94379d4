// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "verify/verdict.hpp"

namespace terrace {
namespace {

using namespace testing;

TEST(Verify, AcceptsAPlanWithoutMistakes) {
  EXPECT_EQ(verdict([](HandMade&) {}), "");
}

// ---- Places

TEST(Verify, RejectsRegionsThatOverlap) {
  EXPECT_EQ(with(2, Alloc{y, fast, 320}),
            "at instruction 2 (alloc y fast @320): y at offset 320 of fast with 320 bytes overlaps w, which "
            "has 256 "
            "bytes at offset 128");
}

TEST(Verify, RejectsRegionsBeyondTheBudget) {
  EXPECT_EQ(with(2, Alloc{y, fast, 768}),
            "at instruction 2 (alloc y fast @768): y at offset 768 of fast with 320 bytes ends beyond the "
            "budget of "
            "1024");
  EXPECT_EQ(with(2, Alloc{y, fast, ~std::uint64_t{63}}),
            "at instruction 2 (alloc y fast @18446744073709551552): y at offset 18446744073709551552 of fast "
            "with 320 "
            "bytes ends beyond the budget of 1024");
}

TEST(Verify, RejectsOffsetsOffTheGranularity) {
  EXPECT_EQ(
      with(8, Alloc{y, slow, 72}),
      "at instruction 8 (alloc y slow @72): y at offset 72 of slow does not lie on the granularity of 64B");
}

TEST(Verify, RejectsASecondRegionAndAMissingOne) {
  EXPECT_EQ(before(3, Alloc{y, fast, 704}),
            "at instruction 3 (alloc y fast @704): y already has a region in fast, at offset 384");
  EXPECT_EQ(before(3, Free{z, slow}), "at instruction 3 (free z slow): there is no region of z in slow");
}

TEST(Verify, AnEmptyTensorNeedsARegionAndNoRoom) {
  EXPECT_EQ(
      without(4),
      "at instruction 5 (run forward as large (x fast, w fast, > y fast, > e slow, ~ s fast)): kernel "
      "forward "
      "writes e in slow, where it has no region\n"
      "at instruction 14 (run last (y slow, e slow, > z fast)): kernel last reads e in slow, where it has no "
      "region\n"
      "at instruction 16 (free e slow): there is no region of e in slow");
  EXPECT_EQ(with(4, Alloc{{HandMade::e}, slow, 4096}), "");
  EXPECT_NE(with(4, Alloc{{HandMade::e}, slow, 4160}), "");
}

TEST(Verify, RejectsBudgetsThatTheMachineDoesNotHave) {
  EXPECT_EQ(verdict([](HandMade& it) { it.plan.budget.pop_back(); }),
            "at the start: the plan has 2 budgets, but the machine has 3 tiers");
  EXPECT_EQ(verdict([](HandMade& it) { it.plan.budget[1] = Bytes{(1 << 20) + 1}; }),
            "at the start: the budget of slow is 1048577 bytes, above its capacity of 1048576");
}

TEST(Verify, RejectsIdsOfNothing) {
  EXPECT_EQ(before(0, Alloc{{9}, fast, 0}),
            "at instruction 0 (alloc tensor[9] fast @0): it names tensor 9, but the graph has 6");
  EXPECT_EQ(before(0, Free{x, {3}}),
            "at instruction 0 (free x tier[3]): it names tier 3, but the machine has 3");
  EXPECT_EQ(before(0, run(7, {})),
            "at instruction 0 (run kernel[7] ()): it names kernel 7, but the graph has 3");
}

// ---- Transfers

TEST(Verify, RejectsTicketsThatAreNotUsedOnce) {
  EXPECT_EQ(without(18),
            "at instruction 18 (free w fast): the region of w in fast is freed while a transfer reads it\n"
            "at the end: ticket #3 is never waited for");
  EXPECT_EQ(before(6, Wait{1}), "at instruction 6 (wait #1): ticket #1 was waited for before");
  EXPECT_EQ(before(6, Wait{9}), "at instruction 6 (wait #9): nothing before it has ticket #9");
  EXPECT_EQ(before(9, Copy{{y}, fast, slow, 1}),
            "at instruction 9 (copy y fast > slow #1): ticket #1 is used a second time");
}

TEST(Verify, RejectsCopiesOfNothing) {
  EXPECT_EQ(first(with(1, Copy{{w}, fast, disk, 1})),
            "at instruction 1 (copy w fast > disk #1): the region of w in fast is copied, but holds nothing "
            "defined");
  const std::string text = "at instruction 9 (copy ";
  EXPECT_EQ(first(before(9, Copy{{}, fast, slow, 7})), text + " fast > slow #7): it copies no tensor");
  EXPECT_EQ(first(before(9, Copy{{z}, fast, slow, 7})), text + "z fast > slow #7): z has no region in fast");
  EXPECT_EQ(first(before(9, Copy{{y}, fast, fast, 7})), text + "y fast > fast #7): it copies within fast");
}

TEST(Verify, RejectsCopiesWithoutALink) {
  EXPECT_EQ(verdict([](HandMade& it) { it.machine.links.erase(it.machine.links.begin() + 3); }),
            "at instruction 1 (copy w disk > fast #1): there is no link from disk to fast");
}

TEST(Verify, RejectsEveryUseOfADestinationBeforeTheWait) {
  EXPECT_EQ(first(without(5)),
            "at instruction 5 (run forward as large (x fast, w fast, > y fast, > e slow, ~ s fast)): kernel "
            "forward reads w "
            "in fast, which a transfer fills that was not waited for");
  const std::string two_links = verdict([](HandMade& it) {
    const std::vector<Instruction> more{Alloc{w, slow, 1024}, Copy{{w}, slow, fast, 9}};
    it.plan.instructions.insert(it.plan.instructions.begin() + 2, more.begin(), more.end());
  });
  EXPECT_NE(two_links.find("at instruction 3 (copy w slow > fast #9): the region of w in fast is copied to "
                           "while another transfer fills it"),
            std::string::npos)
      << two_links;
  EXPECT_EQ(first(before(2, Copy{{w}, fast, disk, 9})),
            "at instruction 2 (copy w fast > disk #9): the region of w in fast is copied while a transfer "
            "fills it");
  EXPECT_EQ(first(before(2, Free{w, fast})),
            "at instruction 2 (free w fast): the region of w in fast is freed while a transfer fills it");
}

TEST(Verify, RejectsChangesToASourceBeforeTheWait) {
  EXPECT_EQ(first(before(10, Free{y, fast})),
            "at instruction 10 (free y fast): the region of y in fast is freed while a transfer reads it");
  EXPECT_EQ(first(before(10, run(HandMade::forward, {fast, fast, fast, slow, fast}))),
            "at instruction 10 (run forward as small (x fast, w fast, > y fast, > e slow, ~ s fast)): kernel "
            "forward writes "
            "y in fast while a transfer reads it");
  EXPECT_EQ(first(verdict([](HandMade& it) {
              auto& list = it.plan.instructions;
              list.insert(list.begin() + 10, Copy{{y}, disk, fast, 9});
              list.insert(list.begin() + 9, {Alloc{y, disk, 4096}, Copy{{y}, fast, disk, 8}, Wait{8}});
            })),
            "at instruction 13 (copy y disk > fast #9): the region of y in fast is copied to while a "
            "transfer reads it");
}

TEST(Verify, RejectsWritingADestinationBeforeTheWait) {
  EXPECT_EQ(first(before(10, run(HandMade::forward, {fast, fast, slow, slow, fast}))),
            "at instruction 10 (run forward as small (x fast, w fast, > y slow, > e slow, ~ s fast)): kernel "
            "forward writes "
            "y in slow, which a transfer fills that was not waited for");
}

TEST(Verify, AcceptsReadingASourceBeforeTheWait) {
  // The update reads y while it travels, and a second transfer may carry it, too.
  EXPECT_EQ(verdict([](HandMade& it) {
              auto& list = it.plan.instructions;
              list.insert(list.begin() + 10, {Alloc{y, disk, 4096}, Copy{{y}, fast, disk, 9}});
              list.insert(list.begin() + 14, {Wait{9}, Free{y, disk}});
            }),
            "");
}

TEST(Verify, TensorsOfOneCopyLieSideBySideInBothTiers) {
  const auto together = [](std::uint64_t w_offset, std::uint64_t y_offset) {
    return first(verdict([&](HandMade& it) {
      auto& list = it.plan.instructions;
      list[8] = Alloc{y, slow, y_offset};
      list[9] = Copy{{{w}, {y}}, fast, slow, 2};
      list.insert(list.begin() + 9, Alloc{w, slow, w_offset});
      // The update of w waits for the transfer.
      std::swap(list[11], list[12]);
      list.push_back(Free{w, slow});
    }));
  };
  EXPECT_EQ(together(0, 256), "");
  EXPECT_EQ(together(1024, 64),
            "at instruction 10 (copy w, y fast > slow #2): w ends at 1280 of slow and y begins at 64: "
            "tensors of one copy "
            "lie side by side");
}

// ---- Kernels

TEST(Verify, RejectsOperandsThatKernelsCannotUse) {
  EXPECT_EQ(first(with(10, run(HandMade::update, {disk, fast, disk}))),
            "at instruction 10 (run update (w disk, y fast, > w disk)): kernel update reads w in disk, which "
            "kernels cannot "
            "use in place");
}

TEST(Verify, RejectsValuesOtherThanThoseOfTheGraphsOrder) {
  EXPECT_EQ(
      first(verdict([](HandMade& it) { std::swap(it.plan.instructions[6], it.plan.instructions[10]); })),
      "at instruction 6 (run update (w fast, y fast, > w fast)): kernel update reads the value of write 1 of "
      "y in "
      "fast, which holds nothing defined");
  EXPECT_EQ(before(11, run(HandMade::update, {fast, fast, fast})),
            "at instruction 11 (run update (w fast, y fast, > w fast)): kernel update reads the value from "
            "before the step "
            "of w in fast, which holds the value of write 1");
}

TEST(Verify, AcceptsRecomputationFromTheSameValues) {
  EXPECT_EQ(before(7, run(HandMade::forward, {fast, fast, fast, slow, fast})), "");
  EXPECT_EQ(before(16, run(HandMade::last, {slow, slow, fast})), "");
}

TEST(Verify, AcceptsAnOlderValueWhereARecomputationReadsIt) {
  // The disk still has the w of before the step after the update.
  EXPECT_EQ(verdict([](HandMade& it) {
              auto& list = it.plan.instructions;
              list.insert(
                  list.begin() + 11,
                  {Wait{2}, Alloc{w, slow, 512}, Copy{{w}, fast, slow, 4}, Wait{4}, Copy{{w}, disk, fast, 5},
                   Wait{5}, Alloc{s, fast, 704}, run(HandMade::forward, {fast, fast, fast, slow, fast}),
                   Free{s, fast}, Copy{{w}, slow, fast, 6}, Wait{6}, Free{w, slow}});
              list.erase(list.begin() + 23);
            }),
            "");
}

TEST(Verify, RejectsAnInPlaceOperandInTwoTiers) {
  EXPECT_EQ(first(verdict([](HandMade& it) {
              it.plan.instructions[10] = run(HandMade::update, {fast, fast, slow});
              it.plan.instructions.insert(it.plan.instructions.begin() + 10, Alloc{w, slow, 512});
            })),
            "at instruction 11 (run update (w fast, y fast, > w slow)): kernel update works on w in place, "
            "but reads it in "
            "fast and writes it in slow");
}

TEST(Verify, RejectsRunsThatDoNotFitTheirKernel) {
  const std::string text = "at instruction 6 (run forward";
  EXPECT_EQ(first(with(6, run(HandMade::forward, {fast, fast, fast, slow, fast}, 2))),
            text +
                " as variant[2] (x fast, w fast, > y fast, > e slow, ~ s fast)): kernel forward has 2 "
                "variants, and "
                "number 2 is asked for");
  EXPECT_EQ(first(with(6, run(HandMade::forward, {fast, fast}))),
            text + " as small (fast, fast)): kernel forward has 5 operands, and 2 tiers are stated");
  EXPECT_EQ(verdict([](HandMade& it) { it.graph.kernels[0].variants[1].workspace = Bytes{65}; }),
            text +
                " as large (x fast, w fast, > y fast, > e slow, ~ s fast)): kernel forward as variant large "
                "needs 65B of "
                "workspace, and s has 64B");
}

TEST(Verify, AVariantWithoutAWorkspaceNeedsNoRegionForIt) {
  const auto run_without_scratch = [](std::uint32_t variant) {
    return verdict([variant](HandMade& it) {
      auto& list = it.plan.instructions;
      std::get<terrace::Run>(list[6]).variant = variant;
      list.erase(list.begin() + 7);
      list.erase(list.begin() + 3);
    });
  };
  EXPECT_EQ(run_without_scratch(0), "");
  EXPECT_EQ(run_without_scratch(1),
            "at instruction 5 (run forward as large (x fast, w fast, > y fast, > e slow, ~ s fast)): kernel "
            "forward works in s in fast, where it has no region");
}

TEST(Verify, AWorkspaceHoldsNothing) {
  EXPECT_EQ(verdict([](HandMade& it) {
              auto& list = it.plan.instructions;
              list.insert(list.begin() + 7,
                          {Alloc{s, slow, 512}, Copy{{s}, fast, slow, 9}, Wait{9}, Free{s, slow}});
            }),
            "at instruction 8 (copy s fast > slow #9): the region of s in fast is copied, but holds nothing "
            "defined");
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// A step takes no memory. oneDNN makes small notes about the arguments of a primitive each time it runs one,
// the mover about each transfer, and both give them back: everything larger, and everything that stays, is
// counted as ours. Carrying the state to another graph takes what it says.
#include <gtest/gtest.h>
#include <malloc.h>

#include "exec/planned.hpp"
#include "exec/relocation.hpp"
#include "split/nets.hpp"
#include "support/counted_memory.hpp"

namespace terrace {
namespace {
using namespace literals;

struct Growth {
  std::size_t large = 0;  ///< allocations above what oneDNN notes for one primitive
  std::ptrdiff_t live = 0, heap = 0;
  bool none() const { return large == 0 && live == 0 && heap == 0; }
};

/// Of what malloc has handed out.
std::ptrdiff_t heap_bytes() {
  const auto info = mallinfo2();
  return static_cast<std::ptrdiff_t>(info.uordblks + info.hblkhd);
}

Growth growth_of_step(Trainer& trainer, std::uint64_t number) {
  fill_inputs(trainer, number);
  const std::size_t large = counted::large_allocations;
  const std::ptrdiff_t before = counted::live, heap = heap_bytes();
  trainer.step();
  return {counted::large_allocations - large, counted::live - before, heap_bytes() - heap};
}

TEST(Trainer, TakesNoMemoryDuringAStep) {
#ifndef TERRACE_COUNTS_ALLOCATIONS
  GTEST_SKIP() << "allocations are counted in builds without sanitizers";
#endif
  for (const Graph& graph : small_graphs()) {
    SCOPED_TRACE(graph.name);
    Trainer trainer = start(graph);
    // What is made once, on the first run of a primitive or of one of its threads, may come in any early
    // step.
    Growth least = growth_of_step(trainer, 0);
    for (std::uint64_t i = 1; i < 8 && !least.none(); ++i) least = growth_of_step(trainer, i);
    EXPECT_EQ(least.large, 0U);
    EXPECT_EQ(least.live, 0);
    EXPECT_EQ(least.heap, 0);
  }
}

/// What malloc has handed out is not compared: threads keep what others gave back.
TEST(PlannedTrainer, TakesNoMemoryDuringAStepThatStays) {
#ifndef TERRACE_COUNTS_ALLOCATIONS
  GTEST_SKIP() << "allocations are counted in builds without sanitizers";
#endif
  const TemporaryFolder folder;
  for (const SlowTier& slow : slow_tiers(folder)) {
    SCOPED_TRACE(slow.name);
    Trainer trainer = start(small_resnet(), slow);
    // The mover's threads may put their notes away a moment after a transfer has ended.
    Growth least = growth_of_step(trainer, 0);
    for (std::uint64_t i = 1; i < 50 && (least.large != 0 || least.live != 0); ++i)
      least = growth_of_step(trainer, i);
    EXPECT_EQ(least.large, 0U);
    EXPECT_EQ(least.live, 0);
  }
}

/// A tensor that is kept in parts, put together: with and without room for that in the fastest tier.
TEST(Relocation, TakesNoMoreMemoryThanItCounts) {
#ifndef TERRACE_COUNTS_ALLOCATIONS
  GTEST_SKIP() << "allocations are counted in builds without sanitizers";
#endif
  const Graph whole = test::classifier(400, 500), parts = test::split(whole, 40);
  const Machine machine = two_tiers("fake:16MiB,blocks", {64}, {512}, false);
  for (const Bytes fast : {4_KiB, 1_MiB, 4_MiB}) {
    SCOPED_TRACE(to_string(fast));
    const std::vector<Bytes> budget{fast, 16_MiB};
    const OpenTiers tiers = OpenTiers::open({whole.name, machine, budget}).value();
    const Store from = kept_in_slow_tier(parts, machine, tiers, 0_B),
                to = kept_in_slow_tier(whole, machine, tiers, 8_MiB);
    Relocation relocation({parts, from}, {whole, to}, tiers);
    const counted::Peak peak;
    relocation.run();
    EXPECT_GE(peak.get(), relocation.most_held().count);
    EXPECT_LT(peak.get(), (relocation.most_held() + 64_KiB).count) << "but for notes";
    EXPECT_EQ(relocation.most_held() == Bytes{0}, fast == 4_MiB);
  }
}

}  // namespace
}  // namespace terrace

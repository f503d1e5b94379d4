// SPDX-License-Identifier: Apache-2.0
// A step takes no memory. oneDNN makes small notes about the arguments of a primitive each time it runs one,
// the mover about each transfer, and both give them back: everything larger, and everything that stays, is
// counted as ours. Carrying the state to another graph takes what it says.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "exec/planned.hpp"
#include "exec/relocation.hpp"
#include "split/nets.hpp"

namespace {

/// Of what oneDNN notes for one primitive.
constexpr std::size_t kNote = 4096;

std::atomic<std::size_t> large_allocations{0};
std::atomic<std::ptrdiff_t> live{0};
std::atomic<std::size_t> bytes{0}, most_bytes{0};

[[maybe_unused]] void count(std::size_t size) {
  const std::size_t now = bytes += size;
  for (std::size_t most = most_bytes; now > most && !most_bytes.compare_exchange_weak(most, now);) continue;
}

[[maybe_unused]] void* take(std::size_t size, std::size_t alignment) {
  if (size > kNote) ++large_allocations;
  ++live;
  void* memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  count(malloc_usable_size(memory));
  return memory;
}

[[maybe_unused]] void give(void* memory) noexcept {
  if (memory != nullptr) --live;
  bytes -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

// A sanitizer has an allocator of its own, which must stay whole.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TERRACE_COUNTS_ALLOCATIONS 1
void* operator new(std::size_t size) { return take(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return take(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { give(memory); }
void operator delete(void* memory, std::size_t) noexcept { give(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give(memory); }
#endif

namespace terrace {
namespace {
using namespace literals;

struct Growth {
  std::size_t large = 0;
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
  const std::size_t large = large_allocations;
  const std::ptrdiff_t before = live, heap = heap_bytes();
  trainer.step();
  return {large_allocations - large, live - before, heap_bytes() - heap};
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
    const std::size_t before = bytes;
    most_bytes = before;
    relocation.run();
    EXPECT_GE(most_bytes - before, relocation.most_held().count);
    EXPECT_LT(most_bytes - before, (relocation.most_held() + 64_KiB).count) << "but for notes";
    EXPECT_EQ(relocation.most_held() == Bytes{0}, fast == 4_MiB);
  }
}

}  // namespace
}  // namespace terrace

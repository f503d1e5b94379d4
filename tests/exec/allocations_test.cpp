// A step takes no memory. oneDNN makes small notes about the arguments of a primitive each time it runs one,
// and gives them back: everything larger, and everything that stays, is counted as ours.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "exec/nets.hpp"

namespace {

/// Of what oneDNN notes for one primitive.
constexpr std::size_t kNote = 4096;

std::atomic<std::size_t> large_allocations{0};
std::atomic<std::ptrdiff_t> live{0};

void* take(std::size_t size, std::size_t alignment) {
  if (size > kNote) ++large_allocations;
  ++live;
  if (void* memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment))
    return memory;
  throw std::bad_alloc();
}

void give(void* memory) noexcept {
  if (memory != nullptr) --live;
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return take(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return take(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { give(memory); }
void operator delete(void* memory, std::size_t) noexcept { give(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give(memory); }

namespace terrace {
namespace {

TEST(Trainer, TakesNoMemoryDuringAStep) {
  for (const Graph& graph : small_graphs()) {
    SCOPED_TRACE(graph.name);
    Trainer trainer = start(graph);
    // What is made once, on the first run of a primitive or a thread.
    for (std::uint64_t i = 0; i < 2; ++i) step(trainer, i);
    fill_inputs(trainer, 2);
    const std::size_t large = large_allocations;
    const std::ptrdiff_t before = live;
    const auto heap = mallinfo2();
    trainer.step();
    EXPECT_EQ(large_allocations, large);
    EXPECT_EQ(live, before);
#ifndef __SANITIZE_ADDRESS__
    EXPECT_EQ(mallinfo2().uordblks, heap.uordblks);
    EXPECT_EQ(mallinfo2().hblkhd, heap.hblkhd);
#endif
  }
}

}  // namespace
}  // namespace terrace

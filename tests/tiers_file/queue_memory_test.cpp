// SPDX-License-Identifier: Apache-2.0
// Registered memory: an optimisation that must never change a byte.
#include <atomic>
#include <thread>

#include "queue_fixture.hpp"

namespace terrace {
namespace {
using namespace file_test;

using QueueMemory = QueueTest;

TEST_P(QueueMemory, RegisteredAndPlainMemoryGiveTheSameBytes) {
  Memory registered(kCapacity), plain(kCapacity), again(kCapacity);
  registered.randomise(3);
  const bool cheaper = queue_->register_memory(registered.span());
  EXPECT_EQ(cheaper, GetParam().uring);
  EXPECT_EQ(write(0, registered.span()), std::int64_t{kCapacity});
  EXPECT_EQ(read(0, plain.span()), std::int64_t{kCapacity});
  EXPECT_TRUE(std::ranges::equal(registered.span(), plain.span()));

  plain.randomise(4);
  EXPECT_EQ(write(0, plain.span()), std::int64_t{kCapacity});
  EXPECT_EQ(read(0, registered.span()), std::int64_t{kCapacity});
  EXPECT_TRUE(std::ranges::equal(registered.span(), plain.span()));
}

TEST_P(QueueMemory, RequestsThatReachBeyondRegisteredMemoryWork) {
  Memory memory(16 * kBlock), check_memory(16 * kBlock);
  memory.randomise(5);
  queue_->register_memory(memory.span().subspan(4 * kBlock, 4 * kBlock));
  EXPECT_EQ(write(0, memory.span()), std::int64_t{16 * kBlock});
  EXPECT_EQ(write(0, memory.span().subspan(0, 6 * kBlock)), std::int64_t{6 * kBlock});
  EXPECT_EQ(write(6 * kBlock, memory.span().subspan(6 * kBlock, 4 * kBlock)), std::int64_t{4 * kBlock});
  EXPECT_EQ(read(0, check_memory.span()), std::int64_t{16 * kBlock});
  EXPECT_TRUE(std::ranges::equal(memory.span(), check_memory.span()));
}

TEST_P(QueueMemory, MemoryRegisteredAnewAfterBeingMappedAnewIsTheMemoryUsed) {
  Memory content(16 * kBlock);
  content.randomise(6);
  ASSERT_EQ(write(0, content.span()), std::int64_t{16 * kBlock});
  const auto map = [](void* where) {
    return static_cast<std::byte*>(mmap(where, 16 * kBlock, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED : 0), -1, 0));
  };
  std::byte* memory = map(nullptr);
  for (int i = 0; i < 3; ++i) {
    queue_->register_memory({memory, 16 * kBlock});
    queue_->register_memory({memory, 16 * kBlock});
    EXPECT_EQ(read(0, {memory, 16 * kBlock}), std::int64_t{16 * kBlock});
    EXPECT_TRUE(std::equal(memory, memory + 16 * kBlock, content.data())) << "mapping " << i;
    ASSERT_EQ(map(memory), memory);
  }
  munmap(memory, 16 * kBlock);
}

TEST_P(QueueMemory, ForgottenMemoryMayBeMappedAnew) {
  Memory content(16 * kBlock);
  content.randomise(8);
  ASSERT_EQ(write(0, content.span()), std::int64_t{16 * kBlock});
  void* memory = mmap(nullptr, 16 * kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const std::span<std::byte> span(static_cast<std::byte*>(memory), 16 * kBlock);
  queue_->register_memory(span);
  queue_->forget_memory(span);
  ASSERT_EQ(mmap(memory, span.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            memory);
  EXPECT_EQ(read(0, span), std::int64_t{16 * kBlock});
  EXPECT_TRUE(std::ranges::equal(span, content.span()));
  munmap(memory, span.size());
}

TEST_P(QueueMemory, OverlappingRegistrationsReplaceEachOther) {
  Memory memory(32 * kBlock), content(32 * kBlock);
  content.randomise(7);
  ASSERT_EQ(write(0, content.span()), std::int64_t{32 * kBlock});
  std::mt19937_64 random(8);
  for (int i = 0; i < 300; ++i) {
    const std::size_t begin = random() % 31, end = begin + 1 + random() % (32 - begin);
    queue_->register_memory(memory.span().subspan(begin * kBlock, (end - begin) * kBlock));
    const std::size_t from = random() % 31, to = from + 1 + random() % (32 - from);
    const auto part = memory.span().subspan(from * kBlock, (to - from) * kBlock);
    std::ranges::fill(part, std::byte{0});
    ASSERT_EQ(read(from * kBlock, part), static_cast<std::int64_t>(part.size()));
    ASSERT_TRUE(std::ranges::equal(part, content.span().subspan(from * kBlock, part.size())));
  }
}

TEST_P(QueueMemory, RegistersManyMoreTimesThanTheTableHasEntries) {
  Memory memory(4 * kBlock);
  for (int i = 0; i < 3000; ++i) {
    ASSERT_EQ(queue_->register_memory(memory.span()), GetParam().uring) << "time " << i;
  }
}

TEST_P(QueueMemory, MayBeRegisteredByAnotherThreadMeanwhile) {
  Memory memory(16 * kBlock), content(16 * kBlock), other(4 * kBlock);
  content.randomise(13);
  ASSERT_EQ(write(0, content.span()), std::int64_t{16 * kBlock});
  std::atomic<bool> stop = false;
  std::thread registrar([&] {
    while (!stop.load()) {
      queue_->register_memory(memory.span());
      queue_->register_memory(other.span());
    }
  });
  for (int i = 0; i < 200; ++i) {
    std::ranges::fill(memory.span(), std::byte{0});
    EXPECT_EQ(read(0, memory.span()), std::int64_t{16 * kBlock});
    EXPECT_EQ(std::memcmp(memory.data(), content.data(), 16 * kBlock), 0);
  }
  stop.store(true);
  registrar.join();
}

INSTANTIATE_TEST_SUITE_P(All, QueueMemory, kVariants, name_of);

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "profile/access/page_watch.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <deque>
#include <thread>

#include "access/sweeps.hpp"
#include "base/random.hpp"

namespace terrace {
namespace {

using namespace literals;

PageAccesses counted(std::uint64_t reads, std::uint64_t writes) { return {reads, writes, true}; }

TEST(PageWatch, CountsNothingWhereNothingIsTouched) {
  const PageMemory memory = pages_of_memory(8);
  const auto watching = watch();
  watching->add(memory.pages());
  EXPECT_EQ(watching->remove(memory.pages().data()), counted(0, 0));
}

TEST(PageWatch, CountsEveryPageOfASweepOnce) {
  const PageMemory read = pages_of_memory(100), written = pages_of_memory(37), both = pages_of_memory(5);
  const auto watching = watch();
  for (const PageMemory* memory : {&read, &written, &both}) watching->add(memory->pages());
  read_sweep(read.pages());
  write_sweep(written.pages());
  add_sweep(both.pages());
  EXPECT_EQ(watching->take(read.pages().data()), counted(100, 0));
  EXPECT_EQ(watching->take(written.pages().data()), counted(0, 37));
  EXPECT_EQ(watching->take(both.pages().data()), counted(5, 5));
  EXPECT_EQ(watching->take(both.pages().data()), counted(0, 0)) << "what was taken is gone";
}

TEST(PageWatch, SeesAWriteAfterReadingAndNoReadAfterWriting) {
  const PageMemory memory = pages_of_memory(2);
  const auto watching = watch();
  watching->add(memory.pages());
  write_page(memory.pages(), 0);
  read_page(memory.pages(), 0);
  EXPECT_EQ(watching->take(memory.pages().data()), counted(0, 1));
  read_page(memory.pages(), 1);
  write_page(memory.pages(), 1);
  write_page(memory.pages(), 1);
  EXPECT_EQ(watching->take(memory.pages().data()), counted(1, 1));
}

TEST(PageWatch, CountsTheSubsetThatIsTouched) {
  SplitMix random(7);
  const PageMemory memory = pages_of_memory(500);
  const auto watching = watch();
  watching->add(memory.pages());
  std::uint64_t reads = 0, writes = 0;
  for (std::size_t i = 0; i < 500; ++i) {
    const auto kind = random.below(3);
    if (kind == 1) ++reads, read_page(memory.pages(), i, random.below(kPage));
    if (kind == 2) ++writes, write_page(memory.pages(), i);
  }
  ASSERT_GT(reads, 100U);
  ASSERT_GT(writes, 100U);
  EXPECT_EQ(watching->remove(memory.pages().data()), counted(reads, writes));
}

TEST(PageWatch, CountsAgainAfterArming) {
  const PageMemory memory = pages_of_memory(20);
  const auto watching = watch();
  watching->add(memory.pages());
  for (int sweep = 0; sweep < 4; ++sweep) {
    watching->arm();
    read_sweep(memory.pages());
    read_sweep(memory.pages());
  }
  EXPECT_EQ(watching->remove(memory.pages().data()), counted(80, 0));
}

TEST(PageWatch, CountsEverySweepOverMoreThanTheWindowAndOneOverLess) {
  const auto watching = watch(8_MiB);
  const std::size_t window = watching->window().count / kPage;
  for (const std::size_t pages : {window, window + 1, window * 2}) {
    SCOPED_TRACE(pages);
    const PageMemory memory = pages_of_memory(pages);
    watching->add(memory.pages());
    for (int sweep = 0; sweep < 3; ++sweep) add_sweep(memory.pages());
    const std::uint64_t seen = pages > window ? pages * 3 : pages;
    EXPECT_EQ(watching->remove(memory.pages().data()), counted(seen, seen));
  }
}

/// Streams that go side by side do not disturb each other: what was opened last is armed last.
TEST(PageWatch, CountsInterleavedSweepsOverMoreThanTheWindow) {
  const auto watching = watch(8_MiB);
  const std::size_t pages = watching->window().count / kPage;
  const PageMemory from = pages_of_memory(pages), to = pages_of_memory(pages);
  watching->add(from.pages());
  watching->add(to.pages());
  for (int sweep = 0; sweep < 3; ++sweep) {
    for (std::size_t i = 0; i < pages * kPage; i += 64) to.pages()[i] = from.pages()[i];
  }
  EXPECT_EQ(watching->remove(from.pages().data()), counted(pages * 3, 0));
  EXPECT_EQ(watching->remove(to.pages().data()), counted(0, pages * 3));
}

TEST(PageWatch, OpensAndCountsSeveralPagesAtOnceWhereAsked) {
  const PageMemory memory = pages_of_memory(10);
  const auto watching = watch();
  watching->add(memory.pages(), 4);
  read_page(memory.pages(), 1);
  EXPECT_EQ(watching->take(memory.pages().data()), counted(4, 0));
  write_page(memory.pages(), 9);  // the last run has two pages
  EXPECT_EQ(watching->take(memory.pages().data()), counted(0, 2));
}

/// The model behind it: a cache of whole pages, first in, first out.
class Oracle {
 public:
  Oracle(std::size_t window, std::size_t pages) : window_(window), states_(pages) {}
  void touch(std::size_t page, Access access) {
    int& state = states_[page];
    const int wanted = access == Access::write ? 2 : 1;
    if (state == 0) {
      if (open_.size() == window_) states_[open_.front()] = 0, open_.pop_front();
      open_.push_back(page);
    }
    if (state >= wanted) return;
    ++(access == Access::write ? counts.writes : counts.reads);
    state = wanted;
  }
  PageAccesses counts;

 private:
  std::size_t window_;
  std::vector<int> states_;
  std::deque<std::size_t> open_;
};

TEST(PageWatch, MissesLikeACacheThatForgetsTheOldest) {
  const auto watching = watch(Bytes{1});  // as small as can be: one page is armed for each that is opened
  const std::size_t window = watching->window().count / kPage, pages = window * 3 / 2;
  const PageMemory memory = pages_of_memory(pages);
  watching->add(memory.pages());
  Oracle oracle(window, pages);
  SplitMix random(11);
  std::vector<std::byte> shadow(pages);
  for (std::size_t i = 0; i < pages * 20; ++i) {
    const std::size_t page = random.below(pages);
    if (random.below(3) == 0) {
      shadow[page] = std::byte(random.below(256));
      oracle.touch(page, Access::write);
      write_page(memory.pages(), page, shadow[page]);
    } else {
      oracle.touch(page, Access::read);
      ASSERT_EQ(memory.pages()[page * kPage], shadow[page]);
    }
  }
  EXPECT_GT(oracle.counts.reads, pages * 2) << "pages were forgotten";
  EXPECT_EQ(watching->remove(memory.pages().data()), oracle.counts);
}

TEST(PageWatch, CountsAPageOnceHoweverManyThreadsTouchIt) {
  const PageMemory memory = pages_of_memory(300);
  const auto watching = watch();
  watching->add(memory.pages());
  for (int round = 1; round <= 5; ++round) {
    watching->arm();
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { read_sweep(memory.pages()); });
    threads.clear();
    EXPECT_EQ(watching->take(memory.pages().data()), counted(300, 0)) << round;
  }
}

TEST(PageWatch, CountsThreadsOnPagesOfTheirOwn) {
  const PageMemory memory = pages_of_memory(400);
  const auto watching = watch();
  watching->add(memory.pages());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] { add_sweep(memory.pages().subspan(i * 100 * kPage, 100 * kPage)); });
  threads.clear();
  EXPECT_EQ(watching->remove(memory.pages().data()), counted(400, 400));
}

/// Areas come and go and are armed while threads work: nothing they write is lost.
TEST(PageWatch, LosesNoDataWhateverHappensAtOnce) {
  const auto watching = watch(Bytes{1});
  std::atomic<bool> done = false;
  std::jthread arming([&] {
    while (!done) watching->arm();
  });
  const auto work = [&](std::uint64_t seed) {
    SplitMix random(seed);
    for (int round = 0; round < 20; ++round) {
      const std::size_t pages = 1 + random.below(60);
      const PageMemory memory = pages_of_memory(pages);
      std::vector<std::byte> shadow(pages);
      watching->add(memory.pages(), 1 + random.below(3));
      for (int i = 0; i < 300; ++i) {
        const std::size_t page = random.below(pages);
        EXPECT_EQ(memory.pages()[page * kPage], shadow[page]);
        shadow[page] = std::byte(random.below(256));
        write_page(memory.pages(), page, shadow[page]);
      }
      const PageAccesses seen = watching->remove(memory.pages().data());
      EXPECT_TRUE(seen.complete);
      EXPECT_GT(seen.writes, 0U);
      for (std::size_t page = 0; page < pages; ++page) EXPECT_EQ(memory.pages()[page * kPage], shadow[page]);
    }
  };
  std::vector<std::jthread> threads;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) threads.emplace_back(work, seed);
  threads.clear();
  done = true;
}

TEST(PageWatch, OpensEverythingWhenItEnds) {
  const PageMemory memory = pages_of_memory(3);
  {
    const auto watching = watch();
    watching->add(memory.pages());
  }
  write_sweep(memory.pages());
  EXPECT_EQ(memory.pages()[2 * kPage], std::byte{2});
}

/// A system call does not fault: it fails, which is why nothing may be armed that the mover uses.
TEST(PageWatch, MakesSystemCallsFailOnArmedPages) {
  const PageMemory memory = pages_of_memory(1);
  const auto watching = watch();
  watching->add(memory.pages());
  unsigned char resident = 0;
  EXPECT_EQ(mincore(memory.pages().data(), kPage, &resident), 0);
  EXPECT_EQ(mincore(memory.pages().data(), kPage, reinterpret_cast<unsigned char*>(memory.pages().data())),
            -1);
  EXPECT_EQ(errno, EFAULT);
}

/// Memory with a hole in it cannot be protected as a whole.
TEST(PageWatch, SaysSoWhereTheSystemDoesNotProtect) {
  PageMemory memory = pages_of_memory(4);
  const auto watching = watch();
  munmap(memory.pages().data() + 2 * kPage, kPage);
  watching->add(memory.pages());
  write_page(memory.pages(), 0);
  EXPECT_FALSE(watching->remove(memory.pages().data()).complete);
}

TEST(PageWatch, RefusesWhatIsNoAreaOrIsOneAlready) {
  const PageMemory memory = pages_of_memory(8);
  const auto watching = watch();
  const auto pages = memory.pages();
  watching->add(pages.subspan(2 * kPage, 3 * kPage));
  for (const std::size_t first : {0, 1, 2, 3, 4}) {
    EXPECT_THROW(watching->add(pages.subspan(first * kPage, 3 * kPage)), std::logic_error) << first;
  }
  EXPECT_THROW(watching->add(pages.subspan(1, kPage)), std::logic_error);
  EXPECT_THROW(watching->add(pages.subspan(0, kPage + 1)), std::logic_error);
  EXPECT_THROW(watching->add(pages.subspan(0, 0)), std::logic_error);
  EXPECT_THROW(watching->remove(pages.data()), std::logic_error);
  watching->add(pages.subspan(0, 2 * kPage));
  watching->add(pages.subspan(5 * kPage));
  read_sweep(pages);
  EXPECT_EQ(watching->remove(pages.data()), counted(2, 0));
}

}  // namespace
}  // namespace terrace

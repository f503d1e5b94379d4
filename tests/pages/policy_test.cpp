// SPDX-License-Identifier: Apache-2.0
// What leaves first, how much comes, and what is kept from others' eyes: the small decisions behind paged
// memory, each by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "base/random.hpp"
#include "pages/cipher.hpp"
#include "pages/compressed_store.hpp"
#include "pages/file_store.hpp"
#include "pages/first_writes.hpp"
#include "pages/group_room.hpp"
#include "pages/heat.hpp"
#include "pages/locality.hpp"
#include "pages/room_reserve.hpp"
#include "pages/victims.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace::pages {
namespace {

TEST(Heat, IsTheMovingAverageOfThePaper) {
  Heat heat;
  double expected = 0;  // 002 eq. 8.2 in doubles
  SplitMix random(1);
  for (std::uint16_t round = 1; round < 200; ++round) {
    const auto references = static_cast<unsigned>(random.below(4));
    for (unsigned i = 0; i < references; ++i) heat.reference(round);
    expected = 0.5 * references + 0.5 * expected;
    EXPECT_NEAR(heat.value(round) / static_cast<double>(Heat::kOne), expected, 0.2) << "round " << round;
  }
}

TEST(Heat, CoolsWhileNobodyLooks) {
  Heat heat;
  heat.reference(1, 3);
  const unsigned hot = heat.value(1);
  EXPECT_NEAR(heat.value(2), hot / 2, 1);
  EXPECT_NEAR(heat.value(4), hot / 8, 1);
  EXPECT_EQ(heat.value(1000), 0U);
}

Address page_of(std::uint64_t part, std::uint64_t page) {
  return (Address{1} << 30) + part * kPart + page * kPage;
}

TEST(Locality, BringsSinglePagesWhereTouchesAreScattered) {
  Locality locality;
  SplitMix random(2);
  std::size_t early = 0, late = 0;
  for (int i = 0; i < 4000; ++i) {
    const unsigned brought = count_of(locality.worth(page_of(random.below(1 << 16), random.below(16)))) - 1;
    (i < 2000 ? early : late) += brought;
  }
  EXPECT_LT(early, 1000U) << "what was learned of one area is used for the next";
  EXPECT_EQ(late, 0U);
}

// In a small memory scattered touches meet the same part again soon, and sooner where some parts are hotter.
TEST(Locality, TakesChanceForNoNeighbourhood) {
  for (const std::uint64_t parts : {128U, 256U, 512U}) {
    Locality locality;
    SplitMix random(5);
    std::size_t in_vain = 0;
    for (int i = 0; i < 20000; ++i) {
      const std::uint64_t part = random.below(random.below(2) == 0 ? parts : parts / 4);
      in_vain += count_of(locality.worth(page_of(part, random.below(16)))) - 1;
    }
    EXPECT_LT(in_vain, 20000U / 4) << parts << " parts";
  }
}

/// Touches so many pages of each part, one `apart` from the next. Returns how many pages a fault brings.
double brought_where(unsigned touched, unsigned apart, std::uint64_t seed) {
  Locality locality;
  SplitMix random(seed);
  std::uint64_t faults = 0, pages = 0;
  for (int i = 0; i < 6000; ++i) {
    const std::uint64_t part = random.below(1 << 14), first = random.below(17 - (touched - 1) * apart);
    PageMask here = 0;
    for (unsigned k = 0; k < touched; ++k) {
      const Address page = page_of(part, std::min<std::uint64_t>(first + k * apart, 15));
      if (here & page_bit(page)) continue;
      const PageMask brought = locality.worth(page);
      EXPECT_NE(brought & page_bit(page), 0) << "the page itself comes always";
      here = static_cast<PageMask>(here | brought);
      if (i < 2000) continue;  // until every area of 64 MiB is known by itself
      ++faults;
      pages += count_of(brought);
    }
  }
  return static_cast<double>(pages) / static_cast<double>(faults);
}

TEST(Locality, BringsAsMuchAsIsUsedTogether) {
  EXPECT_LT(brought_where(1, 1, 3), 1.1);
  EXPECT_LT(brought_where(2, 15, 4), 1.1) << "a second page far away is not worth thirteen in vain";
  EXPECT_NEAR(brought_where(2, 1, 5), 4, 1.5);
  EXPECT_NEAR(brought_where(4, 2, 6), 8, 3);
  EXPECT_GT(brought_where(16, 1, 7), 13) << "few faults are probes";
}

TEST(Locality, ForgetsAndKeepsAreasApart) {
  Locality locality;
  SplitMix random(8);
  const auto sweep = [&](Address base, int parts) {
    std::size_t pages = 0, faults = 0;
    for (int i = 0; i < parts; ++i) {
      const Address part = base + random.below(256) * kPart;
      for (std::size_t page = 0, here = 0; page < 16; ++page) {
        if (here >> page & 1) continue;
        const PageMask brought = locality.worth(part + page * kPage);
        here |= brought;
        pages += count_of(brought);
        ++faults;
      }
    }
    return static_cast<double>(pages) / static_cast<double>(faults);
  };
  const auto scatter = [&](Address base, int touches) {
    std::size_t pages = 0;
    for (int i = 0; i < touches; ++i)
      pages += count_of(locality.worth(base + random.below(1 << 10) * kPart + random.below(16) * kPage));
    return static_cast<double>(pages) / touches;
  };
  const Address one = Address{1} << 40, other = Address{1} << 41;
  sweep(one, 2000);
  scatter(other, 4000);
  EXPECT_GT(sweep(one, 50), 10) << "scattered memory elsewhere must not spoil it";
  scatter(one, 4000);
  EXPECT_LT(scatter(one, 1000), 1.2) << "a change is noticed";
}

TEST(FirstWrites, AreExpectedWhereMostPagesAreWritten) {
  FirstWrites writes;
  const Address one = Address{1} << 40, other = Address{1} << 41;
  EXPECT_FALSE(writes.expected(one));
  for (int i = 0; i < 32; ++i) writes.written(one);
  int writable = 0;
  for (int i = 0; i < 160; ++i) writable += writes.expected(one);
  EXPECT_GE(writable, 140);
  EXPECT_LT(writable, 160) << "some come write-protected, so that a change is noticed";
  EXPECT_FALSE(writes.expected(other));
  for (int i = 0; i < 32; ++i) writes.left_clean(one);
  EXPECT_FALSE(writes.expected(one));
}

TEST(GroupRoom, IsWhatTheLimitLeavesAndMoreForFilesThatAreReadAgain) {
  const TemporaryFolder folder;
  const auto write = [&](const char* name, const std::string& text) { std::ofstream(folder / name) << text; };
  const auto statistics = [&](int inactive, int refaults) {
    write("memory.stat", "anon 1\ninactive_file " + std::to_string(inactive) + "\nworkingset_refault_file " +
                             std::to_string(refaults) + "\n");
  };
  constexpr std::int64_t kLimit = 256 << 20, kUsage = 100 << 20;
  write("memory.max", std::to_string(kLimit) + "\n");
  write("memory.current", std::to_string(kUsage) + "\n");
  statistics(10 << 20, 1000);
  GroupRoom room(folder.path());
  ASSERT_TRUE(room.is_known());
  room.left();  // what was read again before nobody knows of
  std::int64_t left = 0;
  for (int i = 0; i < 5000; ++i) left = room.left().value();
  EXPECT_NEAR(static_cast<double>(left), kLimit - kUsage + (10 << 20), 8 << 20);
  EXPECT_LT(left, kLimit - kUsage + (10 << 20)) << "something is kept for what comes between two looks";
  for (int i = 0; i < 100; ++i) {
    statistics(10 << 20, 1000 + 100 * (i + 1));
    room.left();
  }
  const std::int64_t with_files = room.left().value();
  EXPECT_LE(with_files, left - kLimit / 10);
  EXPECT_GE(with_files, left - kLimit / 8);
  for (int i = 0; i < 5000; ++i) room.left();
  EXPECT_GT(room.left().value(), left - (1 << 20)) << "files that nobody reads again give it back";
  write("memory.max", "max\n");
  EXPECT_FALSE(room.left()) << "no limit";
  EXPECT_FALSE(GroupRoom("").is_known());
  EXPECT_FALSE(GroupRoom(folder / "nowhere").left());
}

TEST(RoomReserve, CoversWhatComesAndNoMore) {
  RoomReserve reserve(100, 5000);
  EXPECT_EQ(reserve.pages(), 100U);
  std::uint64_t came = 0;
  for (int tick = 0; tick < 50; ++tick) reserve.tick(came += 10);  // single pages
  EXPECT_EQ(reserve.pages(), 100U) << "memory that is kept free is of use to nobody";
  reserve.tick(came += 800);  // a sweep begins
  EXPECT_GE(reserve.pages(), 800U) << "what comes within a tick has room";
  for (int tick = 0; tick < 3; ++tick) reserve.tick(came += 100000);
  EXPECT_EQ(reserve.pages(), 5000U);
  reserve.tick(came);
  EXPECT_GT(reserve.pages(), 2500U) << "a pause is no end";
  for (int tick = 0; tick < 60; ++tick) reserve.tick(came);
  EXPECT_EQ(reserve.pages(), 100U);
  reserve.tick(20);  // a forked child counts from zero
  EXPECT_EQ(reserve.pages(), 100U);
}

/// Resident parts of which the policy says who leaves.
struct Residents {
  explicit Residents(const char* policy)
      : table(std::size_t{1} << 30), victims(make_victims(policy, table).value()) {}
  PartId id(std::uint64_t part) { return table.find_or_make(kChunk * 1024 + part * kPart); }
  void arrive(std::uint64_t part, Arrival::Why why) {
    victims->arrived(id(part), {why, true, kPagesOfPart, 64 * kPagesOfPart});
  }
  PartId leave() {
    const PartId gone = victims->next();
    if (gone != kNoPart) victims->left(gone);
    return gone;
  }
  PartTable table;
  std::unique_ptr<Victims> victims;
};

/// Misses of a cache of 64 parts under accesses of which nothing is known but the misses.
int misses(const char* policy, std::uint64_t seed) {
  Residents residents(policy);
  SplitMix random(seed);
  std::vector<bool> present(512);
  std::size_t count = 0;
  int missed = 0;
  for (int i = 0; i < 40000; ++i) {
    // Half of the accesses go to 32 parts, the others anywhere.
    const std::uint64_t part = random.below(2) == 0 ? random.below(32) * 16 : random.below(512);
    if (present[part]) continue;
    ++missed;
    if (count == 64) {
      const PartId gone = residents.leave();
      present[(residents.table.address(gone) - kChunk * 1024) / kPart] = false;
      --count;
    }
    residents.arrive(part, Arrival::Why::touched);
    present[part] = true;
    ++count;
  }
  return missed;
}

TEST(Victims, KeeperMissesLessThanLruWhereSomeMemoryIsHot) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    EXPECT_LT(misses("keeper", seed), misses("lru", seed) * 95 / 100);
}

TEST(Victims, WhatASweepBroughtLeavesFirstUnlessItHadBeenHot) {
  Residents residents("keeper");
  residents.arrive(1, Arrival::Why::touched);
  for (int i = 0; i < 3; ++i) {
    residents.arrive(2, Arrival::Why::touched);
    residents.victims->left(residents.id(2));
  }
  residents.arrive(2, Arrival::Why::swept);
  residents.arrive(3, Arrival::Why::swept);
  EXPECT_EQ(residents.leave(), residents.id(3));
  EXPECT_EQ(residents.leave(), residents.id(1));
  EXPECT_EQ(residents.leave(), residents.id(2));
  EXPECT_EQ(residents.leave(), kNoPart);
}

TEST(Victims, WhatIsNotWantedSoonLeavesFirst) {
  for (const char* policy : {"async-lmp", "keeper"}) {
    Residents residents(policy);
    for (std::uint64_t part = 0; part < 4; ++part) residents.arrive(part, Arrival::Why::touched);
    ASSERT_TRUE(residents.victims->follows_hints());
    residents.victims->not_wanted_soon(residents.id(2));
    EXPECT_EQ(residents.leave(), residents.id(2)) << policy;
    EXPECT_EQ(residents.leave(), residents.id(0)) << policy;
  }
}

TEST(Victims, KeeperSparesWhatSamplesFoundHot) {
  Residents residents("keeper");
  for (std::uint64_t part = 0; part < 4; ++part) residents.arrive(part, Arrival::Why::touched);
  residents.victims->ask_samples([](Address address) { return address / kPart % 4 < 2 ? 1.0 : 0.0; });
  EXPECT_EQ(residents.leave(), residents.id(2));
  EXPECT_EQ(residents.leave(), residents.id(3));
}

TEST(Cipher, GivesTheBytesOfItsStandard) {
  // RFC 8439, section 2.4.2.
  ChaCha20::Key key;
  auto* const bytes = reinterpret_cast<unsigned char*>(key.data());
  for (unsigned char i = 0; i < 32; ++i) bytes[i] = i;
  const std::string plain =
      "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen "
      "would be it.";
  const unsigned char expected[] = {0x6e, 0x2e, 0x35, 0x9a, 0x25, 0x68, 0xf9, 0x80,
                                    0x41, 0xba, 0x07, 0x28, 0xdd, 0x0d, 0x69, 0x81};
  std::vector<std::byte> text(plain.size());
  ChaCha20(key).apply({0, 0x4a000000, 0}, 1, reinterpret_cast<const std::byte*>(plain.data()), text.data(),
                      plain.size());
  EXPECT_EQ(std::memcmp(text.data(), expected, sizeof expected), 0);
  EXPECT_EQ(text.back(), std::byte{0x4d});
  ChaCha20(key).apply({0, 0x4a000000, 0}, 1, text.data(), text.data(), plain.size());
  EXPECT_EQ(std::memcmp(text.data(), plain.data(), plain.size()), 0);
}

TEST(EncryptedStore, HidesPagesAndGivesThemBack) {
  const TemporaryFolder folder;
  auto plain = open_file_store({"a test", folder.path(), Bytes{1 << 20}, true}).value();
  Store* const disk = plain.get();
  const auto store = encrypted(std::move(plain));
  ASSERT_NE(store, nullptr);
  Reserved<std::byte> data(kPart, "a test's data"), back(kPart, "a test's data");
  std::memset(data.data(), 7, kPart);
  const iovec piece{data.data(), kPart};
  std::vector<std::byte> first(kPage);
  for (int write = 0; write < 2; ++write) {
    ASSERT_EQ(store->write(kPart, {&piece, 1}), 0);
    ASSERT_EQ(disk->read(kPart, back.data(), kPart), 0);
    EXPECT_EQ(std::count(back.data(), back.data() + kPart, std::byte{7}) < 1000, true)
        << "the disk has other bytes";
    EXPECT_NE(std::memcmp(back.data(), first.data(), kPage), 0) << "the same bytes look different each time";
    std::memcpy(first.data(), back.data(), kPage);
    ASSERT_EQ(store->read(kPart + kPage, back.data(), kPage), 0);
    EXPECT_EQ(std::memcmp(back.data(), data.data(), kPage), 0);
  }
}

class CompressedStore : public ::testing::Test {
 protected:
  void SetUp() override {
    if (store == nullptr) GTEST_SKIP() << "built without LZ4";
  }
  int write(std::uint64_t page) {
    const iovec piece{data.data(), kPage};
    return store->write(page * kPage, {&piece, 1});
  }
  bool holds(std::uint64_t page) {
    return store->read(page * kPage, back.data(), kPage) == 0 &&
           std::memcmp(back.data(), data.data(), kPage) == 0;
  }
  /// A page that becomes smaller by a factor of `share` or so; 0 is one word over and over.
  void make(std::uint64_t seed, std::size_t share) {
    SplitMix random(seed);
    for (std::size_t i = 0; i < kPage; i += 8) {
      const std::uint64_t word = share > 0 && i % (8 * share) == 0 ? random.next() : seed;
      std::memcpy(data.data() + i, &word, 8);
    }
  }

  std::unique_ptr<Store> store = compressed_store(Bytes{4 << 20});
  Reserved<std::byte> data{kPage, "a test's data"}, back{kPage, "a test's data"};
};

// Overwriting, forgetting and reading in any order, beside a plain array of what must be there.
TEST_F(CompressedStore, GivesBackWhatItWasGiven) {
  std::vector<std::pair<std::uint64_t, std::size_t>> kept(600);  // seed and share; seed 0: nothing
  SplitMix random(11);
  int held = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t page = random.below(kept.size());
    if (random.below(4) == 0) {
      store->forget(page * kPage, kPage);
      kept[page].first = 0;
    } else if (random.below(2) == 0) {
      kept[page] = {random.next() | 1, random.below(5)};
      make(kept[page].first, kept[page].second);
      ASSERT_EQ(write(page), 0) << "the most that 600 pages can take is less than the room";
    } else if (kept[page].first != 0) {
      make(kept[page].first, kept[page].second);
      ASSERT_TRUE(holds(page)) << "step " << i;
      ++held;
    }
  }
  EXPECT_GT(held, 1000);
  for (std::uint64_t page = 0; page < kept.size(); ++page) store->forget(page * kPage, kPage);
  EXPECT_EQ(store->memory_in_use(), 0U) << "what is forgotten takes no memory";
}

TEST_F(CompressedStore, TakesLessMemoryThanThePages) {
  for (std::uint64_t page = 0; page < 1000; ++page) {
    make(page + 1, 8);
    ASSERT_EQ(write(page), 0);
  }
  EXPECT_LT(store->memory_in_use(), 1000 * kPage / 3);
  EXPECT_GT(store->memory_in_use(), 1000 * kPage / 16);
  for (std::uint64_t page = 1000; page < 6000; ++page) {
    make(page, 0);
    ASSERT_EQ(write(page), 0);
  }
  EXPECT_LT(store->memory_in_use(), 1000 * kPage / 3) << "a word over and over takes none";
}

TEST_F(CompressedStore, DeclinesPagesThatStayLarge) {
  for (std::uint64_t page = 0; page < 300; ++page) {
    make(page + 1, 1);
    ASSERT_EQ(write(page), 0);
  }
  int declined = 0;
  for (int i = 0; i < 640; ++i) declined += store->declines();
  EXPECT_EQ(declined, 630) << "one in 64 is a probe";
  for (std::uint64_t page = 0; page < 2000; ++page) {
    make(page + 1, 16);
    ASSERT_EQ(write(page), 0);
  }
  EXPECT_FALSE(store->declines());
}

TEST_F(CompressedStore, SaysThatItIsFullBeforeItIs) {
  store->set_room(1 << 20);
  std::uint64_t page = 0;
  for (; !store->nearly_full(); ++page) {
    make(page + 1, 8);
    ASSERT_EQ(write(page), 0);
  }
  EXPECT_GT(page * kPage, std::uint64_t{2} << 20) << "more than the room without packing";
  EXPECT_TRUE(store->declines());
  EXPECT_LE(store->memory_in_use(), std::uint64_t{1} << 20);
  store->set_room(4 << 20);
  EXPECT_FALSE(store->nearly_full());
  int cause = 0;
  for (; cause == 0; ++page) {
    make(page + 1, 1);
    cause = write(page);
  }
  EXPECT_EQ(cause, ENOSPC);
  EXPECT_LE(store->memory_in_use(), std::uint64_t{4} << 20);
}

}  // namespace
}  // namespace terrace::pages

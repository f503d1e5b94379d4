// SPDX-License-Identifier: Apache-2.0
#include "terrace/paged_memory.hpp"

#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "base/random.hpp"
#include "pages/file_store.hpp"
#include "pages/geometry.hpp"
#include "pages/service.hpp"
#include "support/long_tests.hpp"
#include "support/tiers.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace {
namespace {

using namespace literals;
using pages::kPage;
using pages::kPart;

bool allowed() { return pages::probe_userfault().ok(); }
#define NEEDS_USERFAULT() \
  if (!allowed()) GTEST_SKIP() << pages::probe_userfault().error().message

PagedMemoryOptions options(Bytes fast, std::string policy = "lru") {
  PagedMemoryOptions result;
  result.fast = fast;
  result.policy = std::move(policy);
  return result;
}

/// Eight times as much memory as may be resident, on slower memory.
struct Small {
  explicit Small(const char* spec = "fake:32MiB", std::string policy = "lru")
      : tier(open_tier(spec).value()), memory(make(std::move(policy))) {}

  PagedMemory make(std::string policy) {
    Tier* const tiers[] = {tier.get()};
    return PagedMemory::create(16_MiB, options(2_MiB, std::move(policy)), tiers).value();
  }

  std::unique_ptr<Tier> tier;
  PagedMemory memory;
};

void stress(std::span<std::byte> memory, std::uint64_t seed, int operations,
            const PagedMemory* whole = nullptr) {
  std::vector<std::byte> shadow(memory.size());
  SplitMix random(seed);
  for (int i = 0; i < operations; ++i) {
    const std::size_t length = 1 + random.below(random.below(8) == 0 ? 3 * kPart : 300);
    const std::size_t at = random.below(memory.size() - length);
    switch (random.below(8)) {
      case 0:
      case 1:
      case 2: {
        const auto value = static_cast<int>(random.below(256));
        std::memset(&memory[at], value, length);
        std::memset(&shadow[at], value, length);
        break;
      }
      case 3:
        if (whole != nullptr && random.below(8) == 0) {
          const std::size_t first = at / kPage * kPage, bytes = (length + kPage) / kPage * kPage;
          if (first + bytes > memory.size()) break;
          const_cast<PagedMemory*>(whole)->discard(first, Bytes{bytes});
          std::memset(&shadow[first], 0, bytes);
          break;
        }
        [[fallthrough]];
      default:
        ASSERT_EQ(std::memcmp(&memory[at], &shadow[at], length), 0) << "operation " << i << " at " << at;
    }
  }
  ASSERT_EQ(std::memcmp(memory.data(), shadow.data(), memory.size()), 0);
}

class Policies : public ::testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(All, Policies, ::testing::ValuesIn(paged_memory_policies()), [](const auto& policy) {
  std::string name(policy.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST_P(Policies, GiveBackWhatWasWritten) {
  NEEDS_USERFAULT();
  Small small("fake:32MiB", std::string(GetParam()));
  stress(small.memory.as<std::byte>(), 1, few_or_all(4000, 400000), &small.memory);
  // What came back from its way out is there twice until the others of its batch have left.
  PagedMemoryStatistics done = small.memory.statistics();
  for (int i = 0; i < 1000 && done.resident > done.limit; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    done = small.memory.statistics();
  }
  EXPECT_GT(done.fetches, 100U);
  EXPECT_GT(done.written.count, 0U);
  EXPECT_LE(done.resident, done.limit);
  EXPECT_EQ(small.memory.failure(), "");
}

TEST(PagedMemory, ServesManyThreadsFromADisk) {
  NEEDS_USERFAULT();
  const TemporaryFolder folder;
  PagedMemoryOptions wanted = options(4_MiB);
  wanted.slow = {"file:" + folder.path().native() + ":64MiB,buffered"};
  const auto memory = PagedMemory::create(32_MiB, wanted).value();
  const std::span<std::byte> all = memory.as<std::byte>();
  std::vector<std::thread> threads;
  const std::size_t share = all.size() / 4;
  for (std::size_t i = 0; i < 4; ++i)
    threads.emplace_back([=] { stress(all.subspan(i * share, share), i, few_or_all(500, 50000)); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(folder.empty()) << "spilled memory has no name";
  EXPECT_GT(memory.statistics().fetches, 0U);
}

TEST(PagedMemory, EndsWhileReadsAreUnderWay) {
  NEEDS_USERFAULT();
  const TemporaryFolder folder;
  PagedMemoryOptions wanted = options(4_MiB);
  wanted.slow = {"file:" + folder.path().native() + ":64MiB,buffered"};
  for (int i = 0; i < few_or_all(20, 2000); ++i) {
    const auto memory = PagedMemory::create(8_MiB, wanted).value();
    const std::span<std::byte> all = memory.as<std::byte>();
    for (std::size_t at = 0; at < all.size(); at += kPage) all[at] = std::byte{1};
    // A sweep that stops in the middle leaves a read behind that nobody has asked for.
    for (std::size_t at = 0; at < all.size() / 2; at += kPage) ASSERT_EQ(all[at], std::byte{1});
  }
}

TEST(PagedMemory, ReadsAheadInASweep) {
  NEEDS_USERFAULT();
  PagedMemoryOptions wanted = options(16_MiB);
  wanted.slow = {"dram:64MiB"};
  const auto memory = PagedMemory::create(48_MiB, wanted).value();
  const auto numbers = memory.as<std::uint64_t>();
  for (std::size_t i = 0; i < numbers.size(); i += 61) numbers[i] = i;
  for (int sweep = 0; sweep < 2; ++sweep) {
    for (std::size_t i = 0; i < numbers.size(); i += 61) ASSERT_EQ(numbers[i], i);
  }
  const PagedMemoryStatistics done = memory.statistics();
  EXPECT_GT(done.read_ahead.count, done.read.count / 4);
  EXPECT_GT(done.left_clean.count, 0U) << "what was only read leaves without being written";
}

/// Sweeps that go on, that stop in the middle, and that two threads make at once, between random accesses.
void sweep(std::span<std::byte> memory) {
  const auto value = [](std::size_t at) { return static_cast<std::byte>(at / kPage * 7 + 1); };
  const auto read = [&](std::size_t from, std::size_t to) {
    for (std::size_t at = from; at < to; at += 512) ASSERT_EQ(memory[at], value(at)) << at;
  };
  for (std::size_t at = 0; at < memory.size(); at += 512) memory[at] = value(at);
  read(0, memory.size());
  read(0, memory.size() / 3);
  read(memory.size() / 2, memory.size() / 4 * 3);
  std::thread other([&] { read(memory.size() / 2, memory.size()); });
  read(0, memory.size() / 2);
  other.join();
  SplitMix random(8);
  for (int i = 0; i < 300; ++i) {
    const std::size_t at = random.below(memory.size() / 512) * 512;
    ASSERT_EQ(memory[at], value(at)) << at;
  }
}

TEST(PagedMemory, AFileIsReadWithAndWithoutARing) {
  NEEDS_USERFAULT();
  for (const bool ring : {true, false}) {
    const TemporaryFolder folder;
    std::vector<std::unique_ptr<pages::Store>> stores;
    stores.push_back(pages::open_file_store({"a file", folder.path(), 128_MiB, true}).value());
    pages::ServiceOptions wanted;
    wanted.fast_bytes = 12 << 20;
    wanted.most_bytes = 64 << 20;
    wanted.use_ring = ring;
    const Mapping memory = map_anonymous(48_MiB, "a test's memory");
    const auto service = pages::Service::start(std::move(stores), wanted).value();
    ASSERT_EQ(service->manage(reinterpret_cast<pages::Address>(memory.data()), memory.size()), 0);
    sweep(memory.bytes());
    std::memset(memory.data(), 0, memory.size());  // as stress() wants to find it
    stress(memory.bytes(), 7, few_or_all(400, 40000));
    EXPECT_GT(service->statistics().counts.read_ahead, 1000U);
    EXPECT_EQ(service->check_records(), "");
    EXPECT_EQ(service->statistics().overdue_address, 0U);
  }
}

TEST(PagedMemory, ZerosAreNeverWritten) {
  NEEDS_USERFAULT();
  Small small;
  const auto bytes = small.memory.as<std::byte>();
  for (std::size_t i = 0; i < bytes.size(); i += kPage) ASSERT_EQ(bytes[i], std::byte{0});
  const PagedMemoryStatistics done = small.memory.statistics();
  EXPECT_EQ(done.written.count, 0U);
  EXPECT_GT(done.left_zero.count, 0U);
}

TEST(PagedMemory, SystemCallsReachAbsentPages) {
  NEEDS_USERFAULT();
  Small small;
  const auto bytes = small.memory.as<std::byte>();
  std::memset(bytes.data(), 7, bytes.size());
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  ASSERT_EQ(write(pipe_ends[1], &bytes[5], 100), 100);  // page 0 left long ago
  ASSERT_EQ(read(pipe_ends[0], &bytes[300000], 100), 100);
  EXPECT_EQ(bytes[300099], std::byte{7});
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST(PagedMemory, AFullTierKeepsPagesResident) {
  NEEDS_USERFAULT();
  Small small("fake:4MiB");
  stress(small.memory.as<std::byte>(), 3, 1500);
  const PagedMemoryStatistics done = small.memory.statistics();
  EXPECT_GT(done.resident, done.limit);
  EXPECT_EQ(small.memory.failure(), "");
}

TEST(PagedMemory, ATierThatRefusesWritesKeepsPagesResident) {
  NEEDS_USERFAULT();
  for (const auto fault : {FakeTier::Fault::no_space, FakeTier::Fault::io_error}) {
    Small small("fake:32MiB,blocks,block=4KiB");
    for (std::uint64_t n = 1; n <= 40; n += 3) as_fake(*small.tier).fail(n, fault, Access::write);
    stress(small.memory.as<std::byte>(), 4, 1500);
    EXPECT_EQ(small.memory.failure(), "");
  }
}

sigjmp_buf before_touch;
void on_bus_error(int) { siglongjmp(before_touch, 1); }

TEST(PagedMemory, ALostPageEndsWhoeverTouchesItAndIsNamed) {
  NEEDS_USERFAULT();
  Small small("fake:32MiB,blocks,block=4KiB");
  const auto bytes = small.memory.as<std::byte>();
  std::memset(bytes.data(), 9, bytes.size());
  struct sigaction action {
  }, before{};
  action.sa_handler = on_bus_error;
  sigaction(SIGBUS, &action, &before);
  as_fake(*small.tier).fail_randomly(1, FakeTier::Fault::io_error, 1);
  volatile bool ended = true;
  if (sigsetjmp(before_touch, 1) == 0) {
    [[maybe_unused]] volatile std::byte touched = bytes[0];
    ended = false;
  }
  sigaction(SIGBUS, &before, nullptr);
  EXPECT_TRUE(ended);
  EXPECT_NE(small.memory.failure().find("fake:32MiB"), std::string::npos) << small.memory.failure();
  EXPECT_NE(small.memory.failure().find("offset"), std::string::npos) << small.memory.failure();
}

TEST(PagedMemory, WorksWhereTheKernelCannotMovePages) {
  NEEDS_USERFAULT();
  const auto tier = open_tier("fake:32MiB").value();
  std::vector<std::unique_ptr<pages::Store>> stores;
  stores.push_back(pages::store_on(*tier));
  pages::ServiceOptions wanted;
  wanted.fast_bytes = 2 << 20;
  wanted.most_bytes = 16 << 20;
  wanted.leaving = pages::Userfault::Leaving::copied;
  const Mapping memory = map_anonymous(16_MiB, "a test's memory");
  const auto service = pages::Service::start(std::move(stores), wanted).value();
  ASSERT_EQ(service->manage(reinterpret_cast<pages::Address>(memory.data()), memory.size()), 0);
  stress(memory.bytes(), 5, 700);
  EXPECT_GT(service->statistics().counts.fetch_faults, 10U);
  EXPECT_EQ(service->check_records(), "");
}

/// A store that answers no read until it is told to.
class SilentStore final : public pages::Store {
 public:
  const std::string& name() const noexcept override { return name_; }
  const std::string& path() const noexcept override { return name_; }
  std::uint32_t slots() const noexcept override { return 1024; }
  int read(std::uint64_t, std::byte* to, std::size_t bytes) noexcept override {
    speaks.wait(false);
    std::memset(to, 3, bytes);
    return 0;
  }
  int write(std::uint64_t, std::span<const iovec>) noexcept override { return 0; }

  std::atomic<bool> speaks{false};

 private:
  std::string name_ = "silent";
};

TEST(PagedMemory, AWatchdogNamesAFaultThatNobodyServes) {
  NEEDS_USERFAULT();
  std::vector<std::unique_ptr<pages::Store>> stores;
  stores.push_back(std::make_unique<SilentStore>());
  auto& silent = static_cast<SilentStore&>(*stores.front());
  pages::ServiceOptions wanted;
  wanted.fast_bytes = 2 << 20;
  wanted.most_bytes = 16 << 20;
  wanted.policy = "lru";
  const Mapping memory = map_anonymous(16_MiB, "a test's memory");
  const auto service = pages::Service::start(std::move(stores), wanted).value();
  const auto start = reinterpret_cast<pages::Address>(memory.data());
  ASSERT_EQ(service->manage(start, memory.size()), 0);
  std::memset(memory.data(), 3, memory.size());  // the first part is the first to leave
  std::thread reader([&] { [[maybe_unused]] volatile std::byte touched = memory.data()[5]; });
  while (service->statistics().overdue_address == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(pages::part_start(service->statistics().overdue_address), start);
  silent.speaks = true;
  silent.speaks.notify_all();
  reader.join();
  EXPECT_EQ(service->statistics().overdue_address, 0U);
}

TEST(PagedMemory, FollowsHintsWhereThePolicyDoes) {
  NEEDS_USERFAULT();
  for (const std::string policy : {"async-lmp", "keeper", "lru"}) {
    PagedMemoryOptions wanted = options(8_MiB, policy.c_str());
    wanted.slow = {"dram:64MiB"};
    wanted.overhead = 0;
    auto memory = PagedMemory::create(32_MiB, wanted).value();
    const auto bytes = memory.as<std::byte>();
    std::memset(bytes.data(), 1, bytes.size());
    memory.discard(26 << 20, 6_MiB);  // so that there is room
    memory.will_need(0, 1_MiB);
    const bool follows = policy != "lru";
    // Until nothing has come for a while.
    std::uint64_t promoted = 0;
    for (int i = 0, quiet = 0; i < 5000 && quiet < 50 && follows; ++i, ++quiet) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (const std::uint64_t now = memory.statistics().promoted.count;
          std::exchange(promoted, now) != now || now == 0)
        quiet = -1;
    }
    const std::uint64_t fetches_before = memory.statistics().fetches;
    for (std::size_t at = 0; at < 1 << 20; at += 64 << 10) EXPECT_EQ(bytes[at], std::byte{1});
    const std::uint64_t fetches = memory.statistics().fetches - fetches_before;
    EXPECT_EQ(fetches < 2, follows) << policy << ": " << fetches;
  }
}

TEST(PagedMemory, SpreadsOverSeveralSlowerTiersStepByStep) {
  NEEDS_USERFAULT();
  PagedMemoryOptions wanted = options(2_MiB, "keeper");
  wanted.slow = {"dram:3MiB", "dram:6MiB", "dram:32MiB"};
  auto memory = PagedMemory::create(16_MiB, wanted).value();
  stress(memory.as<std::byte>(), 6, few_or_all(6000, 200000), &memory);
  EXPECT_GT(memory.statistics().demoted.count, 0U) << "cold parts made room one step down";
  EXPECT_LE(memory.statistics().resident, memory.statistics().limit);
  EXPECT_EQ(memory.failure(), "");
}

TEST(PagedMemory, FindsOutWhatIsHotWithinItsOverhead) {
  NEEDS_USERFAULT();
  PagedMemoryOptions wanted = options(12_MiB, "keeper");
  wanted.slow = {"dram:64MiB"};
  wanted.interval = Seconds{0.06};
  wanted.overhead = 0.2;
  const auto memory = PagedMemory::create(32_MiB, wanted).value();
  const auto bytes = memory.as<std::byte>();
  std::memset(bytes.data(), 1, bytes.size());
  // The second of the chunks in each eight are in use all the time, the others once in a while.
  const auto is_hot = [](std::size_t at) { return at / pages::kChunk % 8 == 1; };
  SplitMix random(1);
  [[maybe_unused]] volatile std::byte other{};
  for (int rounds = 0; memory.statistics().intervals < 12 && rounds < 2000000; ++rounds) {
    for (std::size_t at = 0; at < bytes.size(); at += kPage)
      if (is_hot(at)) other = bytes[at];
    if (rounds % 200 == 0) other = bytes[random.below(bytes.size())];
  }
  double hot = 0, cold = 0;
  for (std::size_t at = 0; at < bytes.size(); at += kPart) (is_hot(at) ? hot : cold) += memory.hotness(at);
  EXPECT_GE(memory.statistics().intervals, 12U);
  EXPECT_GT(hot / 1, 2 * cold / 7) << "hot memory is an eighth of all";
  EXPECT_GT(memory.statistics().samples, 0U);
}

TEST(PagedMemory, RefusesWhatItCannotDoWithASentence) {
  NEEDS_USERFAULT();
  PagedMemoryOptions wanted = options(64_KiB);
  wanted.slow = {"dram:4MiB"};
  EXPECT_NE(PagedMemory::create(8_MiB, wanted).error().message.find("at least 1.00 MiB"), std::string::npos);
  wanted.fast = 2_MiB;
  wanted.policy = "best";
  EXPECT_NE(PagedMemory::create(8_MiB, wanted).error().message.find("keeper, lru, async-lmp, first-touch"),
            std::string::npos);
  wanted.slow = {"file:/proc/nowhere/x:1GiB"};
  EXPECT_FALSE(PagedMemory::create(8_MiB, wanted).ok());
}

}  // namespace
}  // namespace terrace

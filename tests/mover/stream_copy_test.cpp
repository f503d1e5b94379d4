// SPDX-License-Identifier: Apache-2.0
#include "mover/stream_copy.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace terrace {
namespace {

constexpr std::size_t kGuard = 256;
constexpr unsigned char kPoison = 0xA5;

// Copies by the given way inside poisoned memory, and says whether exactly the right bytes changed.
class Arena {
 public:
  explicit Arena(std::size_t bytes) : source_(bytes + 2 * kGuard), target_(bytes + 2 * kGuard) {
    std::mt19937_64 random(7);
    for (auto& byte : source_) byte = static_cast<unsigned char>(random());
  }

  template <class Copy>
  ::testing::AssertionResult copies(std::size_t to, std::size_t from, std::size_t bytes, Copy copy) {
    std::fill(target_.begin(), target_.end(), kPoison);
    unsigned char* target = align(target_) + to;
    const unsigned char* source = align(source_) + from;
    copy(target, source, bytes);
    if (!std::equal(target, target + bytes, source)) return ::testing::AssertionFailure() << "wrong bytes";
    if (!poisoned(target_.data(), target)) return ::testing::AssertionFailure() << "wrote before the range";
    if (!poisoned(target + bytes, target_.data() + target_.size()))
      return ::testing::AssertionFailure() << "wrote behind the range";
    return ::testing::AssertionSuccess();
  }

 private:
  static unsigned char* align(std::vector<unsigned char>& memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    return memory.data() + (64 - address % 64) % 64 + 64;
  }
  static bool poisoned(const unsigned char* begin, const unsigned char* end) {
    return std::all_of(begin, end, [](unsigned char byte) { return byte == kPoison; });
  }
  std::vector<unsigned char> source_, target_;
};

class StreamCopy : public ::testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (!path().available) GTEST_SKIP() << path().name << " is not available here";
  }
  const CopyPath& path() const { return copy_paths()[GetParam()]; }
  ::testing::AssertionResult copies(Arena& arena, std::size_t to, std::size_t from, std::size_t bytes) const {
    return arena.copies(to, from, bytes, [&](void* target, const void* source, std::size_t size) {
      stream_copy(path(), target, source, size);
    });
  }
};

TEST_P(StreamCopy, CopiesEverySmallSize) {
  Arena arena(1024);
  for (std::size_t bytes = 0; bytes <= 1000; ++bytes) {
    ASSERT_TRUE(copies(arena, 0, 0, bytes)) << bytes;
    ASSERT_TRUE(copies(arena, 13, 5, bytes)) << bytes;
  }
}

TEST_P(StreamCopy, CopiesBetweenAllAlignments) {
  const std::size_t bytes = kCopyGroup + 200;
  Arena arena(bytes + 64);
  for (std::size_t to = 0; to <= 64; ++to) {
    for (std::size_t from = 0; from <= 64; ++from) {
      ASSERT_TRUE(copies(arena, to, from, bytes)) << to << " from " << from;
    }
  }
}

TEST_P(StreamCopy, CopiesSizesAroundGroupsAndLargeOddOnes) {
  Arena arena((3u << 20) + 64);
  for (const std::size_t bytes : {kCopyGroup - 1, kCopyGroup, kCopyGroup + 1, 2 * kCopyGroup - 1,
                                  2 * kCopyGroup + 63, std::size_t{1000003}, (std::size_t{3} << 20) - 1}) {
    ASSERT_TRUE(copies(arena, 0, 0, bytes)) << bytes;
    ASSERT_TRUE(copies(arena, 17, 3, bytes)) << bytes;
    ASSERT_TRUE(copies(arena, 1, 64, bytes)) << bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryPath, StreamCopy, ::testing::Range(std::size_t{0}, copy_paths().size()),
                         [](const auto& path) { return std::string(copy_paths()[path.param].name); });

TEST(StreamCopyChoice, CopiesOnBothSidesOfTheThreshold) {
  const std::size_t threshold = stream_threshold();
  Arena arena(threshold + 64);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, threshold - 1, threshold, threshold + 1}) {
    EXPECT_TRUE(arena.copies(3, 0, bytes, [](void* to, const void* from, std::size_t size) {
      stream_copy(to, from, size);
    })) << bytes;
  }
}

TEST(StreamCopyChoice, AlwaysHasAWay) {
  ASSERT_FALSE(copy_paths().empty());
  EXPECT_TRUE(copy_paths().back().available);
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// Both queues, paced or not, with and without the page cache, for one set of expectations.
#pragma once

#include "support.hpp"
#include "tiers/paced_queue.hpp"
#include "tiers/pool_queue.hpp"
#include "tiers/uring_queue.hpp"

namespace terrace::file_test {

inline constexpr std::size_t kBlock = 4096;
inline constexpr std::size_t kCapacity = 1 << 20;

struct Variant {
  const char* name;
  bool uring;
  bool direct;
  bool paced = false;
};

class QueueTest : public ::testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC | (GetParam().direct ? O_DIRECT : 0);
    file_.descriptor = open((folder_ / "data").c_str(), flags, 0600);
    if (file_.descriptor < 0 && GetParam().direct) GTEST_SKIP() << "this disk refuses direct I/O";
    ASSERT_EQ(ftruncate(file_.descriptor, kCapacity), 0);
    file_.capacity = Bytes{kCapacity};
    file_.block_size = Bytes{kBlock};
    file_.memory_alignment = Bytes{512};
    file_.request_size = 64_KiB;
    file_.depth = 8;
    file_.durability = GetParam().direct ? Durability::device : Durability::synced;
    file_.tier = "file:test";
    reopen();
  }
  void TearDown() override {
    queue_.reset();
    if (file_.descriptor >= 0) close(file_.descriptor);
  }

  void reopen() {
    queue_.reset();
    if (GetParam().uring) {
      auto opened = open_uring_queue(file_);
      if (!opened) GTEST_SKIP() << opened.error().message;
      queue_ = std::move(*opened);
    } else {
      queue_ = open_pool_queue(file_, 3);
    }
    // A limit that makes requests wait for their turn but no test long.
    if (GetParam().paced)
      queue_ = pace(std::move(queue_), file_, std::make_shared<SharedPace>(PaceLimits{{500e6}, {500e6}}));
  }

  std::int64_t write(std::uint64_t offset, std::span<std::byte> memory) {
    return transfer(*queue_, Access::write, offset, memory);
  }
  std::int64_t read(std::uint64_t offset, std::span<std::byte> memory) {
    return transfer(*queue_, Access::read, offset, memory);
  }

  TemporaryFolder folder_;
  BlockFile file_;
  std::unique_ptr<BlockQueue> queue_;
};

inline const auto kVariants =
    ::testing::Values(Variant{"UringDirect", true, true}, Variant{"UringBuffered", true, false},
                      Variant{"PoolDirect", false, true}, Variant{"PoolBuffered", false, false},
                      Variant{"PacedUring", true, true, true}, Variant{"PacedPool", false, false, true});

inline std::string name_of(const ::testing::TestParamInfo<Variant>& variant) { return variant.param.name; }

}  // namespace terrace::file_test

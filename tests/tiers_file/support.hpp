// SPDX-License-Identifier: Apache-2.0
// What the tests of the file tier share: aligned memory, one request at a time, a process of their own.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>

#include "terrace/tier.hpp"
#include "tiers/block_file.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace::file_test {
using namespace literals;

/// Page-aligned bytes, at first all `fill`.
class Memory {
 public:
  explicit Memory(std::size_t bytes, std::byte fill = std::byte{0})
      : bytes_(bytes), data_(static_cast<std::byte*>(std::aligned_alloc(4096, bytes)), &std::free) {
    std::fill_n(data_.get(), bytes, fill);
  }
  std::byte* data() const { return data_.get(); }
  std::span<std::byte> span() const { return {data_.get(), bytes_}; }
  void randomise(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (std::size_t i = 0; i < bytes_; i += sizeof(std::uint64_t)) {
      const std::uint64_t value = random();
      std::copy_n(reinterpret_cast<const std::byte*>(&value), sizeof value, data_.get() + i);
    }
  }

 private:
  std::size_t bytes_;
  std::unique_ptr<std::byte, decltype(&std::free)> data_;
};

inline std::int64_t transfer(BlockQueue& queue, Access access, std::uint64_t offset,
                             std::span<const Piece> pieces) {
  queue.submit({access, offset, pieces, 7});
  BlockCompletion completion;
  while (queue.wait({&completion, 1}) == 0) {
  }
  EXPECT_EQ(completion.tag, 7u);
  return completion.result;
}

inline std::int64_t transfer(BlockQueue& queue, Access access, std::uint64_t offset,
                             std::span<std::byte> memory) {
  const Piece piece{memory.data(), memory.size()};
  return transfer(queue, access, offset, {&piece, 1});
}

/// Whether everything there is `value`.
inline bool all(std::span<const std::byte> memory, std::byte value) {
  return memory.front() == value && std::memcmp(memory.data(), memory.data() + 1, memory.size() - 1) == 0;
}

/// Runs `body` in a forked process and returns its exit status; a thrown exception is status 99.
inline int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    int status = 99;
    try {
      status = body();
    } catch (const std::exception& error) {
      fprintf(stderr, "child: %s\n", error.what());
    }
    _exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace terrace::file_test

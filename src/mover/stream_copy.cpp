// SPDX-License-Identifier: Apache-2.0
#include "mover/stream_copy.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace terrace {
namespace {

void copy_group_portable(std::byte* to, const std::byte* from) { std::memcpy(to, from, kCopyGroup); }

#if defined(__x86_64__)

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLine = 64;
constexpr std::size_t kStep = 2 * kLine;  // bytes copied of each page in turn

// Prefetches what the next round copies. The last round of a group prefetches for the next group, which hides
// its page walks; beyond the end of the source that has no effect. It is always inlined, because gcc drops
// calls of a function that only prefetches.
[[gnu::always_inline]] inline void prefetch_round(const std::byte* from, std::size_t offset) {
  const std::byte* next = from + (offset + kStep < kPage ? offset + kStep : kCopyGroup);
#pragma GCC unroll 4
  for (std::size_t page = 0; page < kCopyGroup; page += kPage) {
    __builtin_prefetch(next + page);
    __builtin_prefetch(next + page + kLine);
  }
}

__attribute__((target("avx512f"))) void copy_group_avx512(std::byte* to, const std::byte* from) {
  for (std::size_t offset = 0; offset < kPage; offset += kStep) {
    prefetch_round(from, offset);
#pragma GCC unroll 4
    for (std::size_t page = offset; page < kCopyGroup; page += kPage) {
      const __m512i first = _mm512_loadu_si512(from + page);
      const __m512i second = _mm512_loadu_si512(from + page + kLine);
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to + page), first);
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to + page + kLine), second);
    }
  }
}

__attribute__((target("avx2"))) void copy_group_avx2(std::byte* to, const std::byte* from) {
  for (std::size_t offset = 0; offset < kPage; offset += kStep) {
    prefetch_round(from, offset);
#pragma GCC unroll 4
    for (std::size_t page = offset; page < kCopyGroup; page += kPage) {
      const auto* source = reinterpret_cast<const __m256i*>(from + page);
      auto* target = reinterpret_cast<__m256i*>(to + page);
      const __m256i a = _mm256_loadu_si256(source), b = _mm256_loadu_si256(source + 1);
      const __m256i c = _mm256_loadu_si256(source + 2), d = _mm256_loadu_si256(source + 3);
      _mm256_stream_si256(target, a);
      _mm256_stream_si256(target + 1, b);
      _mm256_stream_si256(target + 2, c);
      _mm256_stream_si256(target + 3, d);
    }
  }
}

// A fence is needed, because locks do not order non-temporal stores.
void order_streamed_stores() { _mm_sfence(); }

std::array<CopyPath, 3> find_paths() {
  return {CopyPath{"avx512", __builtin_cpu_supports("avx512f") != 0, copy_group_avx512},
          CopyPath{"avx2", __builtin_cpu_supports("avx2") != 0, copy_group_avx2},
          CopyPath{"portable", true, copy_group_portable}};
}

#else

void order_streamed_stores() { std::atomic_thread_fence(std::memory_order_seq_cst); }

std::array<CopyPath, 1> find_paths() { return {CopyPath{"portable", true, copy_group_portable}}; }

#endif

const CopyPath& best_path() {
  static const CopyPath best = *std::find_if(copy_paths().begin(), copy_paths().end(),
                                             [](const CopyPath& path) { return path.available; });
  return best;
}

}  // namespace

std::span<const CopyPath> copy_paths() {
  static const auto paths = find_paths();
  return paths;
}

// Up to this size most of source and destination fit together into the core's own cache, where memcpy is
// faster.
std::size_t stream_threshold() {
  static const std::size_t threshold = [] {
    const long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return cache > 0 ? static_cast<std::size_t>(cache) / 4 * 3 : std::size_t{512} << 10;
  }();
  return threshold;
}

void stream_copy(const CopyPath& path, void* to, const void* from, std::size_t bytes) {
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(to) % 64;
  const std::size_t head = std::min(bytes, misaligned == 0 ? 0 : 64 - misaligned);
  if (head > 0) std::memcpy(target, source, head);
  std::size_t done = head;
  for (; bytes - done >= kCopyGroup; done += kCopyGroup) path.copy_group(target + done, source + done);
  if (done < bytes) std::memcpy(target + done, source + done, bytes - done);
  order_streamed_stores();
}

void stream_copy(void* to, const void* from, std::size_t bytes) {
  if (bytes >= stream_threshold()) return stream_copy(best_path(), to, from, bytes);
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace terrace

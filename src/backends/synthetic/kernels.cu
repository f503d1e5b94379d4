// SPDX-License-Identifier: Apache-2.0
// The synthetic kernels as GPUs run them; synthetic.hpp says what they do. They are loaded by name.
#include <cstddef>
#include <cstdint>

#include "formula.hpp"

using terrace::synthetic::byte_at;
using terrace::synthetic::scramble;
using terrace::synthetic::share_of;

namespace {

__device__ std::uint64_t first() { return blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x; }
__device__ std::uint64_t stride() { return gridDim.x * static_cast<std::uint64_t>(blockDim.x); }

}  // namespace

/// Adds the digest of one operand. Sums of integers are the same in any order.
extern "C" __global__ void terrace_digest(const std::uint8_t* bytes, std::uint64_t size, std::uint64_t operand,
                                          unsigned long long* digest) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = first(); i < size; i += stride()) sum += share_of(operand, i, bytes[i]);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xFFFFFFFFU, sum, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(digest, static_cast<unsigned long long>(sum));
}

extern "C" __global__ void terrace_write(std::uint8_t* bytes, std::uint64_t size, std::uint64_t operand,
                                         const unsigned long long* digest, std::uint64_t salt) {
  const std::uint64_t value = *digest + scramble(salt);
  for (std::uint64_t i = first(); i < size; i += stride()) bytes[i] = byte_at(value, operand, i);
}

extern "C" __global__ void terrace_stream(uint4* to, const uint4* from, std::uint64_t count) {
  for (std::uint64_t i = first(); i < count; i += stride()) to[i] = from[i];
}

/// Two operations on each of four numbers a round; the result is kept only if it is one that cannot be.
extern "C" __global__ void terrace_multiply_add(float* out, std::uint32_t rounds) {
  float a = threadIdx.x, b = 1, c = 2, d = 3;
  for (std::uint32_t i = 0; i < rounds; ++i) {
    a = a * 0.5F + 0.5F;
    b = b * 0.5F + 0.5F;
    c = c * 0.5F + 0.5F;
    d = d * 0.5F + 0.5F;
  }
  if (a + b + c + d < 0) *out = a;
}

extern "C" __global__ void terrace_spin(std::uint64_t nanoseconds) {
  if (nanoseconds == 0) return;
  std::uint64_t begin = 0, now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < nanoseconds);
}

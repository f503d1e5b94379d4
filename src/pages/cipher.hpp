// SPDX-License-Identifier: Apache-2.0
// ChaCha20 (RFC 8439), for spilled memory that nobody shall read from the disk. Four blocks are computed side
// by side. The key belongs to one store and dies with the process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace terrace::pages {

class ChaCha20 {
 public:
  using Key = std::array<std::uint32_t, 8>;
  using Nonce = std::array<std::uint32_t, 3>;

  explicit ChaCha20(const Key& key) : key_(key) {}

  /// Encrypts or decrypts: `to` becomes `from` combined with the key stream from block `counter` on. They may
  /// be the same memory.
  void apply(const Nonce& nonce, std::uint32_t counter, const std::byte* from, std::byte* to,
             std::size_t bytes) const {
    std::array<std::byte, kLanes * kBlock> stream;
    for (std::size_t at = 0; at < bytes; at += stream.size()) {
      blocks(nonce, counter, stream.data());
      counter += kLanes;
      const std::size_t count = bytes - at < stream.size() ? bytes - at : stream.size();
      for (std::size_t i = 0; i < count; ++i) to[at + i] = from[at + i] ^ stream[i];
    }
  }

 private:
  static constexpr std::size_t kLanes = 4, kBlock = 64;
  using Lanes = std::uint32_t __attribute__((vector_size(kLanes * sizeof(std::uint32_t))));

  static Lanes all(std::uint32_t value) { return Lanes{} + value; }
  static Lanes rotate(Lanes value, int by) { return value << by | value >> (32 - by); }
  static void quarter(Lanes& a, Lanes& b, Lanes& c, Lanes& d) {
    a += b, d = rotate(d ^ a, 16);
    c += d, b = rotate(b ^ c, 12);
    a += b, d = rotate(d ^ a, 8);
    c += d, b = rotate(b ^ c, 7);
  }

  void blocks(const Nonce& nonce, std::uint32_t counter, std::byte* to) const {
    std::array<Lanes, 16> start{all(0x61707865), all(0x3320646e), all(0x79622d32), all(0x6b206574)};
    for (std::size_t i = 0; i < key_.size(); ++i) start[4 + i] = all(key_[i]);
    start[12] = all(counter) + Lanes{0, 1, 2, 3};
    for (std::size_t i = 0; i < nonce.size(); ++i) start[13 + i] = all(nonce[i]);
    std::array<Lanes, 16> x = start;
    for (int round = 0; round < 10; ++round) {
      for (std::size_t i = 0; i < 4; ++i) quarter(x[i], x[4 + i], x[8 + i], x[12 + i]);
      for (std::size_t i = 0; i < 4; ++i)
        quarter(x[i], x[4 + (i + 1) % 4], x[8 + (i + 2) % 4], x[12 + (i + 3) % 4]);
    }
    for (std::size_t word = 0; word < 16; ++word) {
      const Lanes sum = x[word] + start[word];
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const std::uint32_t value = sum[lane];
        std::memcpy(to + lane * kBlock + word * 4, &value, 4);
      }
    }
  }

  Key key_;
};

}  // namespace terrace::pages

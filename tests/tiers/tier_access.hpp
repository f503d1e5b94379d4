// SPDX-License-Identifier: Apache-2.0
// Helpers of the conformance suite: the bytes of any tier, whatever its shape, and what the process holds.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "terrace/tier.hpp"

namespace terrace {

/// Bytes that differ from place to place and from seed to seed.
inline std::vector<std::byte> pattern(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> data(size);
  for (std::size_t i = 0; i < size; i += 8) {
    const std::uint64_t word = random();
    std::memcpy(data.data() + i, &word, std::min<std::size_t>(8, size - i));
  }
  return data;
}

/// Memory that a queue's requests may use.
class AlignedMemory {
 public:
  AlignedMemory(std::size_t size, const BlockQueue& queue)
      : memory_(static_cast<std::byte*>(
                    std::aligned_alloc(std::max<std::size_t>(queue.block_size().count, sizeof(void*)),
                                       round_up(Bytes{size}, queue.block_size()).count)),
                &std::free) {
    if (!memory_) throw std::bad_alloc();
  }
  std::byte* data() const { return memory_.get(); }

 private:
  std::unique_ptr<std::byte, void (*)(void*)> memory_;
};

class TierAccess {
 public:
  explicit TierAccess(Tier& tier) : tier_(tier) {}

  /// Offsets and sizes are multiples of this.
  std::size_t unit() const {
    const std::size_t granule = tier_.description().granularity.count;
    return tier_.blocks() ? std::max<std::size_t>(granule, tier_.blocks()->block_size().count) : granule;
  }

  void write(std::uint64_t offset, const std::vector<std::byte>& data) {
    if (tier_.memory()) {
      std::copy(data.begin(), data.end(), tier_.memory() + offset);
      return;
    }
    if (tier_.device()) {
      std::vector<std::byte> staging = data;
      return transfer_by_queue(Access::write, offset, staging);
    }
    AlignedMemory memory(data.size(), *tier_.blocks());
    std::copy(data.begin(), data.end(), memory.data());
    transfer_all(Access::write, offset, memory.data(), data.size());
  }

  std::vector<std::byte> read(std::uint64_t offset, std::size_t size) {
    if (tier_.memory()) return {tier_.memory() + offset, tier_.memory() + offset + size};
    if (tier_.device()) {
      std::vector<std::byte> data(size);
      transfer_by_queue(Access::read, offset, data);
      return data;
    }
    AlignedMemory memory(size, *tier_.blocks());
    transfer_all(Access::read, offset, memory.data(), size);
    return {memory.data(), memory.data() + size};
  }

  /// One request on an otherwise empty queue: bytes done. Throws where the tier reports an error.
  std::uint64_t transfer(Access access, std::uint64_t offset, std::span<const Piece> pieces) {
    tier_.blocks()->submit({access, offset, pieces, 77});
    BlockCompletion done;
    while (tier_.blocks()->wait({&done, 1}) == 0) {
    }
    if (done.tag != 77) throw std::runtime_error("a completion nobody asked for");
    if (done.result < 0) throw std::runtime_error(std::strerror(static_cast<int>(-done.result)));
    return static_cast<std::uint64_t>(done.result);
  }

 private:
  void transfer_by_queue(Access access, std::uint64_t offset, std::vector<std::byte>& data) {
    Device& device = *tier_.device()->device;
    const DeviceAddress address = tier_.device()->address + offset;
    const auto pin = device.pin(data);
    const auto queue = device.make_queue();
    if (access == Access::read) queue->copy_out(data.data(), address, {data.size()});
    if (access == Access::write) queue->copy_in(address, data.data(), {data.size()});
    queue->finish();
  }

  // A request may be done in part: the rest is asked for again.
  void transfer_all(Access access, std::uint64_t offset, std::byte* memory, std::uint64_t size) {
    for (std::uint64_t done = 0; done < size;) {
      const Piece rest{memory + done, std::min(size - done, tier_.blocks()->request_size().count)};
      const std::uint64_t now = transfer(access, offset + done, {&rest, 1});
      if (now == 0) throw std::runtime_error("no progress");
      done += now;
    }
  }

  Tier& tier_;
};

struct Held {
  std::size_t files = 0, mappings = 0;
  Bytes mapped;
};

inline Held held_by_process() {
  Held held;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) held.files += entry.exists();
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t start = 0, end = 0;
    char readable = '-';
    if (std::sscanf(line.c_str(), "%lx-%lx %c", &start, &end, &readable) != 3) continue;
    if (readable == '-') continue;  // addresses that an allocator keeps for later hold nothing
    ++held.mappings;
    held.mapped += Bytes{end - start};
  }
  return held;
}

}  // namespace terrace

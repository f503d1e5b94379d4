// SPDX-License-Identifier: Apache-2.0
// What the tests of the mover share: tiers of every shape, and a way to see their bytes without a mover.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "terrace/mover.hpp"
#include "terrace/tier.hpp"
#include "tiers/fake.hpp"

namespace terrace::testing {

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB;

using Content = std::vector<std::byte>;

inline std::unique_ptr<FakeTier> fake(const std::string& spec) {
  return make_fake_tier(parse_tier_spec(spec).value());
}

/// All bytes of a block tier that no mover holds, request by request.
inline void transfer_directly(Tier& tier, Access access, std::byte* content) {
  BlockQueue& queue = *tier.blocks();
  const std::size_t most = queue.request_size().count;
  const std::unique_ptr<std::byte, decltype(&std::free)> buffer(
      static_cast<std::byte*>(std::aligned_alloc(4096, round_up({most}, {4096}).count)), &std::free);
  for (std::uint64_t at = 0; at < tier.description().capacity.count; at += most) {
    const std::size_t bytes = std::min<std::uint64_t>(most, tier.description().capacity.count - at);
    if (access == Access::write) std::memcpy(buffer.get(), content + at, bytes);
    const Piece piece{buffer.get(), bytes};
    queue.submit({access, at, {&piece, 1}, 0});
    BlockCompletion completion;
    while (queue.wait({&completion, 1}) == 0) {
    }
    if (completion.result != static_cast<std::int64_t>(bytes)) throw std::runtime_error("a fake tier failed");
    if (access == Access::read) std::memcpy(content + at, buffer.get(), bytes);
  }
}

inline void put(Tier& tier, Content& content) {
  if (tier.memory() == nullptr) return transfer_directly(tier, Access::write, content.data());
  std::memcpy(tier.memory(), content.data(), content.size());
}

inline Content get(Tier& tier) {
  Content content(tier.description().capacity.count);
  if (tier.memory() == nullptr) {
    transfer_directly(tier, Access::read, content.data());
  } else {
    std::memcpy(content.data(), tier.memory(), content.size());
  }
  return content;
}

inline Content random_content(std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Content content(round_up({bytes}, {8}).count);
  for (std::size_t at = 0; at < content.size(); at += 8) {
    const std::uint64_t word = random();
    std::memcpy(content.data() + at, &word, 8);
  }
  content.resize(bytes);
  return content;
}

/// One tier of every shape, filled with random bytes that `shadow` repeats.
struct Rig {
  explicit Rig(Bytes capacity = {256u << 10}) {
    const std::string size = to_string(capacity);
    owned.push_back(open_tier("dram:" + size).value());
    owned.push_back(open_tier("dram:" + size).value());
    owned.push_back(fake("fake:" + size));
    owned.push_back(fake("fake:" + size + ",blocks"));
    owned.push_back(fake("fake:" + size + ",blocks,block=4KiB"));
    for (const auto& tier : owned) {
      tiers.push_back(tier.get());
      shadow.push_back(random_content(tier->description().capacity.count, shadow.size()));
      put(*tier, shadow.back());
    }
  }

  FakeTier& fake_at(std::uint32_t index) { return static_cast<FakeTier&>(*owned[index]); }
  void apply(const Move& move) {
    std::memcpy(shadow[move.to.tier.index].data() + move.to.offset,
                shadow[move.from.tier.index].data() + move.from.offset, move.from.bytes.count);
  }
  /// The first tier whose bytes differ from its shadow, or -1. pre: no mover holds the tiers
  int first_wrong() {
    for (std::size_t i = 0; i < tiers.size(); ++i) {
      if (get(*tiers[i]) != shadow[i]) return static_cast<int>(i);
    }
    return -1;
  }

  static constexpr std::uint32_t kDram = 0, kDram2 = 1, kFake = 2, kBlocks = 3, kBlocks2 = 4, kTiers = 5;
  std::vector<std::unique_ptr<Tier>> owned;
  std::vector<Tier*> tiers;
  std::vector<Content> shadow;
};

inline Move exact(std::uint32_t from, std::uint64_t from_offset, std::uint32_t to, std::uint64_t to_offset,
                  std::uint64_t bytes) {
  return {{{from}, from_offset, {bytes}}, {{to}, to_offset, {bytes}}};
}

}  // namespace terrace::testing

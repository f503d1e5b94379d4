// What the tests of the mover share: tiers of every shape, and a way to see their bytes without a mover.
#pragma once

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "terrace/mover.hpp"
#include "terrace/tier.hpp"
#include "tiers/fake.hpp"

namespace terrace::testing {

using Content = std::vector<std::byte>;

inline std::unique_ptr<FakeTier> fake(const std::string& spec) {
  return make_fake_tier(parse_tier_spec(spec).value());
}

/// One request on a block tier that no mover holds.
inline void transfer_directly(Tier& tier, Access access, std::byte* memory, std::uint64_t offset,
                              std::size_t bytes) {
  const Piece piece{memory, bytes};
  tier.blocks()->submit({access, offset, {&piece, 1}, 0});
  BlockCompletion completion;
  while (tier.blocks()->wait({&completion, 1}) == 0) {
  }
  if (completion.result != static_cast<std::int64_t>(bytes)) throw std::runtime_error("a fake tier failed");
}

inline void put(Tier& tier, const Content& content) {
  if (tier.memory() != nullptr) {
    std::memcpy(tier.memory(), content.data(), content.size());
    return;
  }
  const auto block = tier.blocks()->block_size().count;
  const auto buffer = std::unique_ptr<std::byte, decltype(&std::free)>(
      static_cast<std::byte*>(std::aligned_alloc(4096, std::max<std::size_t>(block, 4096))), &std::free);
  for (std::uint64_t at = 0; at < content.size(); at += block) {
    std::memcpy(buffer.get(), content.data() + at, block);
    transfer_directly(tier, Access::write, buffer.get(), at, block);
  }
}

inline Content get(Tier& tier) {
  Content content(tier.description().capacity.count);
  if (tier.memory() != nullptr) {
    std::memcpy(content.data(), tier.memory(), content.size());
    return content;
  }
  const auto block = tier.blocks()->block_size().count;
  const auto buffer = std::unique_ptr<std::byte, decltype(&std::free)>(
      static_cast<std::byte*>(std::aligned_alloc(4096, std::max<std::size_t>(block, 4096))), &std::free);
  for (std::uint64_t at = 0; at < content.size(); at += block) {
    transfer_directly(tier, Access::read, buffer.get(), at, block);
    std::memcpy(content.data() + at, buffer.get(), block);
  }
  return content;
}

inline Content random_content(std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Content content(bytes);
  for (auto& byte : content) byte = static_cast<std::byte>(random());
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

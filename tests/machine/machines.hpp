// SPDX-License-Identifier: Apache-2.0
// Machines for tests: one that is right in every field, and random ones.
#pragma once

#include <string>

#include "base/random.hpp"
#include "terrace/machine.hpp"

namespace terrace::test {

/// DRAM and a disk, with every field set.
inline Machine small_machine() {
  using namespace literals;
  Machine machine;
  machine.name = "small";
  machine.source = "made up";
  machine.compute = {"a processor", 2, 1e11};
  MachineTier dram, disk;
  dram.name = "dram";
  dram.capacity = 8_GiB;
  dram.read = {20e9};
  dram.write = {10e9};
  dram.latency = Seconds{90e-9};
  dram.granularity = 4_KiB;
  dram.price = 4.5;
  dram.spec = "dram:8GiB";
  disk.name = "disk";
  disk.capacity = 200_GiB;
  disk.addressable = false;
  disk.read = {3e9};
  disk.write = {2e9};
  disk.latency = Seconds{80e-6};
  disk.granularity = 512_B;
  disk.spec = "file:/data/spill:200GiB";
  machine.tiers = {dram, disk};
  machine.links = {{TierId{0}, TierId{1}, {{64_KiB, {0.5e9}}, {1_MiB, {2e9}}}, 0.6, 0.25, 1},
                   {TierId{1}, TierId{0}, {{64_KiB, {0.6e9}}, {1_MiB, {3e9}}}, 0.5, 0.2, 4}};
  return machine;
}

/// A valid machine of up to five tiers and three engines, with any of its fields anything.
class RandomMachines {
 public:
  explicit RandomMachines(std::uint64_t seed) : random_(seed) {}

  Machine next() {
    Machine machine;
    machine.name = text();
    machine.source = text();
    machine.compute = {text(), count(), positive()};
    if (random_.below(4) == 0) machine.compute.by_type = {{DataType::bf16, positive()}};
    const std::uint64_t tiers = 1 + random_.below(5);
    for (std::uint64_t i = 0; i < tiers; ++i) machine.tiers.push_back(tier(i));
    for (std::uint32_t from = 0; from < tiers; ++from) {
      for (std::uint32_t to = 0; to < tiers; ++to) {
        if (from != to && random_.below(3) != 0) machine.links.push_back(link(TierId{from}, TierId{to}));
      }
    }
    for (std::uint64_t number = random_.below(3); number > 0; --number)
      machine.further_engines.push_back(engine(number, static_cast<std::uint32_t>(tiers)));
    return machine;
  }

 private:
  Engine engine(std::uint64_t number, std::uint32_t tiers) {
    Engine engine{{text() + "e" + std::to_string(number), count(), positive()}, {}};
    if (random_.below(2) == 0)
      engine.compute.by_type = {{DataType::f64, positive()}, {DataType::f16, positive()}};
    const auto first = static_cast<std::uint32_t>(random_.below(tiers));
    for (std::uint32_t tier = first; tier < tiers; ++tier) engine.reaches.push_back({tier});
    return engine;
  }

  std::string text() {
    static constexpr std::string_view kLetters[] = {"a", "Z", " ", "\"", "\\", "\n", "{", "\u00e9", "\x01"};
    std::string made;
    for (std::uint64_t length = random_.below(6); length > 0; --length)
      made += kLetters[random_.below(std::size(kLetters))];
    return made;
  }
  unsigned count() { return static_cast<unsigned>(1 + random_.below(1U << random_.below(20))); }
  double share() { return static_cast<double>(random_.below(1U << 30)) / (1U << 30); }
  /// Of any size from a nanosecond to a petabyte.
  double positive() {
    double value = 1 + share();
    for (std::uint64_t steps = random_.below(50); steps > 0; --steps) value *= 2;
    return random_.below(2) == 0 ? value : 1 / value;
  }
  Bytes size() { return {1 + random_.below(std::uint64_t{1} << random_.below(60))}; }

  MachineTier tier(std::uint64_t number) {
    MachineTier tier;
    tier.name = text() + std::to_string(number);
    tier.granularity = {std::uint64_t{1} << random_.below(20)};
    tier.capacity = tier.granularity + size();
    tier.addressable = number == 0 || random_.below(2) == 0;
    tier.read = {positive()};
    tier.write = {positive()};
    tier.latency = Seconds{random_.below(3) == 0 ? 0 : positive()};
    if (random_.below(2) == 0) tier.price = positive();
    if (random_.below(2) == 0) tier.spec = "dram:" + to_string(size());
    return tier;
  }
  Link link(TierId from, TierId to) {
    Link link{from, to, {}, 1 - share(), share(), count()};
    Bytes last{0};
    for (std::uint64_t rates = 1 + random_.below(4); rates > 0; --rates) {
      last += {1 + random_.below(std::uint64_t{1} << 40)};
      link.rates.push_back({last, {positive()}});
    }
    return link;
  }

  SplitMix random_;
};

}  // namespace terrace::test

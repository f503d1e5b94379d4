// SPDX-License-Identifier: Apache-2.0
// Engines holds all engines of one mover. The mover and its transfers share ownership, so that a transfer can
// be waited for after its mover ended. It is thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "mover/memory_engine.hpp"
#include "mover/relay.hpp"
#include "tiers/mapping.hpp"

namespace terrace {

/// A DiskJob is the moves of a transfer between memory and a block tier over one link.
struct DiskJob final : Job, DiskTask {
  DiskJob(Ticket& the_ticket, LinkEnds the_link, LinkTable& the_links, Access access, Tier& memory,
          std::vector<DiskMove> moves)
      : Job(the_ticket, the_link, the_links), DiskTask(the_ticket, access, &memory, std::move(moves)) {}

  void moved(Bytes amount) noexcept override { links.count(link, amount); }
  void finished(bool complete) noexcept override { close(complete); }
};

/// A DeviceJob is the moves of a transfer between a device and memory pinned for it, or within it, over one
/// link.
struct DeviceJob final : Job, DeviceTask {
  DeviceJob(Ticket& the_ticket, LinkEnds the_link, LinkTable& the_links, Direction direction, Tier& tier,
            std::uint64_t offset, std::vector<DeviceCopy> copies)
      : Job(the_ticket, the_link, the_links),
        DeviceTask(the_ticket, direction, tier, offset, std::move(copies)) {}

  void finished(bool complete) noexcept override {
    if (complete) links.count(link, bytes());
    close(complete);
  }
};

class Engines {
 public:
  Engines(std::vector<Tier*> tiers, const MoverOptions& options);
  ~Engines() { stop(); }
  Engines(const Engines&) = delete;

  const std::vector<Tier*>& tiers() const noexcept { return tiers_; }
  Tier& tier(TierId id) const { return *tiers_[id.index]; }
  LinkTable& links() noexcept { return links_; }
  MemoryEngine& memory() noexcept { return *memory_; }
  BlockEngine& blocks(TierId id) noexcept { return *blocks_[id.index]; }
  Relay& relay() noexcept { return *relay_; }
  /// pre: the tier is on a device
  DeviceEngine& device(TierId id) noexcept { return *devices_[id.index]; }
  /// Whether the device of tier `device` reaches this extent by itself, because it is its own memory or host
  /// memory pinned for it.
  bool reaches(TierId device, const Extent& extent);
  Bytes bounce_bytes() const noexcept { return {bounce_.size()}; }

  /// Notifies all engines that some transfer has become urgent.
  void raise() noexcept;
  /// Finishes all transfers, ends all threads and releases the tiers. It may be called again.
  void stop() noexcept;

 private:
  void open_devices();
  void open_bounce(Bytes bounce);
  void register_memory();
  void forget_memory() noexcept;
  std::vector<std::span<std::byte>> memory_of_requests();

  const std::vector<Tier*> tiers_;
  LinkTable links_;
  std::vector<std::unique_ptr<DeviceEngine>> device_engines_;  // one for each device
  std::vector<DeviceEngine*> devices_;                         // nullptr where the tier is on none
  std::vector<std::vector<bool>> pinned_;  // by tier on a device and tier of memory: all of that is pinned
  Mapping bounce_;
  std::vector<std::unique_ptr<DevicePin>> pins_;  // of the bounce memory
  std::unique_ptr<BufferPool> pool_;
  std::unique_ptr<Relay> relay_;
  std::vector<std::unique_ptr<BlockEngine>> blocks_;  // nullptr where the tier has no blocks
  std::unique_ptr<MemoryEngine> memory_;
};

}  // namespace terrace

// Engines holds all engines of one mover. The mover and its transfers share ownership, so that a transfer can
// be waited for after its mover ended. It is thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "mover/disk_relay.hpp"
#include "mover/memory_engine.hpp"
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
  DiskRelay& relay() noexcept { return *relay_; }
  Bytes bounce_bytes() const noexcept { return {bounce_.size()}; }

  /// Notifies all engines that some transfer has become urgent.
  void raise() noexcept;
  /// Finishes all transfers, ends all threads and releases the tiers. It may be called again.
  void stop() noexcept;

 private:
  void open_blocks(Bytes bounce);
  void register_memory();
  void forget_memory() noexcept;
  std::vector<std::span<std::byte>> memory_of_requests();

  const std::vector<Tier*> tiers_;
  LinkTable links_;
  Mapping bounce_;
  std::unique_ptr<BufferPool> pool_;
  std::unique_ptr<DiskRelay> relay_;
  std::vector<std::unique_ptr<BlockEngine>> blocks_;  // nullptr where the tier is addressable
  std::unique_ptr<MemoryEngine> memory_;
};

}  // namespace terrace

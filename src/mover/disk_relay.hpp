// The Ferry copies bytes from one block tier to another, or within one, through buffers of its own, which are
// called carriers.
//
// One block engine reads into a carrier and the other writes it out; several carriers are in use at once, so
// that both disks are busy. Carriers go to the transfer of highest priority first. It is thread-safe.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "mover/block_engine.hpp"

namespace terrace {

/// A FerryJob is the disk-to-disk moves of a transfer over one link.
struct FerryJob : Job {
  using Job::Job;

  std::vector<Move> moves;

  // Guarded by the ferry's mutex.
  std::size_t next_move = 0;
  std::uint64_t next_position = 0;
  unsigned carriers = 0;  // carriers in use by this job
  bool waiting = false;   // has bytes left to load
  bool incomplete = false;
};

class Ferry {
 public:
  /// `engines` has one engine for each block tier, at the tier's index. The ferry borrows its arguments and
  /// must outlive the engines' threads. pre: carrier_bytes is a multiple of every block, and at least two of
  /// the largest; memory holds one carrier
  Ferry(const std::vector<std::unique_ptr<BlockEngine>>& engines, std::vector<Tier*> tiers,
        std::span<std::byte> memory, std::size_t carrier_bytes);

  void start(std::shared_ptr<FerryJob> job);
  /// Returns when all jobs have ended.
  void drain();

 private:
  struct Carrier {
    std::byte* memory = nullptr;
    std::shared_ptr<FerryJob> job;
    Move part;
  };
  class Leg;

  void load(std::unique_lock<std::mutex>& lock);
  std::shared_ptr<FerryJob> best_job();
  void drop(const std::shared_ptr<FerryJob>& job);
  void cut(FerryJob& job, Carrier& carrier);
  void send(Carrier& carrier, Access leg) noexcept;
  void landed(Carrier& carrier, Access leg, bool complete) noexcept;
  void unload(Carrier& carrier, bool complete) noexcept;
  void close_if_ended(FerryJob& job);
  std::uint64_t block(TierId tier) const { return tiers_[tier.index]->blocks()->block_size().count; }

  const std::vector<std::unique_ptr<BlockEngine>>& engines_;
  const std::vector<Tier*> tiers_;
  const std::size_t carrier_bytes_;

  std::mutex mutex_;  // guards all members below
  std::condition_variable ended_;
  std::vector<Carrier> carriers_;
  std::vector<Carrier*> free_;
  std::list<std::shared_ptr<FerryJob>> waiting_;
  std::size_t open_ = 0;
};

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// Tiers that show a test what a mover does to them.
#pragma once

#include <sched.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "rig.hpp"

namespace terrace::testing {

/// Closed until opened: who waits at it goes on then.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    reached_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  /// Returns when someone waits at it, or has.
  void wait_until_reached() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reached_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false, reached_ = false;
};

/// Memory that calls `on_pace`.
class WatchedMemory final : public Tier {
 public:
  WatchedMemory(Bytes capacity, unsigned write_threads) : bytes_(capacity.count) {
    description_.name = "watched";
    description_.capacity = capacity;
    description_.write_threads = write_threads;
  }
  const TierDescription& description() const noexcept override { return description_; }
  std::byte* memory() noexcept override { return bytes_.data(); }
  void pace(Access access, Bytes amount, Seconds) override {
    if (on_pace) on_pace(access, amount);
  }

  std::function<void(Access, Bytes)> on_pace;

 private:
  TierDescription description_;
  Content bytes_;
};

/// A fake block tier of depth 1 that remembers its requests, and takes those with a gate when it is open.
class WatchedBlocks final : public Tier, private BlockQueue {
 public:
  struct Seen {
    Access access;
    std::uint64_t offset;
    std::size_t pieces;
    bool operator==(const Seen&) const = default;
  };

  explicit WatchedBlocks(const std::string& spec) : tier_(fake(spec)), queue_(*tier_->blocks()) {}
  const TierDescription& description() const noexcept override { return tier_->description(); }
  BlockQueue* blocks() noexcept override { return this; }

  std::map<std::size_t, Gate> gates;  ///< by number of the request, from 0; all made before the first
  /// pre: no mover works
  const std::vector<Seen>& seen() const { return seen_; }
  /// Of each wait whether a request was in flight, and the scheduling policy of the thread. pre: as seen()
  struct Waited {
    bool in_flight;
    int policy;
    bool operator==(const Waited&) const = default;
  };
  const std::vector<Waited>& waits() const { return waits_; }
  void await_waits(std::size_t count) {
    std::unique_lock lock(mutex_);
    waited_.wait(lock, [&] { return waits_.size() >= count; });
  }

 private:
  Bytes block_size() const noexcept override { return queue_.block_size(); }
  Bytes memory_alignment() const noexcept override { return queue_.memory_alignment(); }
  Bytes request_size() const noexcept override { return queue_.request_size(); }
  unsigned depth() const noexcept override { return 1; }
  bool register_memory(std::span<std::byte> memory) override { return queue_.register_memory(memory); }
  void submit(const BlockRequest& request) override {
    const auto gate = gates.find(seen_.size());
    if (gate != gates.end()) gate->second.wait();
    seen_.push_back({request.access, request.offset, request.pieces.size()});
    queue_.submit(request);
  }
  std::size_t wait(std::span<BlockCompletion> completions) override {
    {
      const std::lock_guard lock(mutex_);
      waits_.push_back({seen_.size() > completed_, sched_getscheduler(0)});
    }
    waited_.notify_all();
    const std::size_t count = queue_.wait(completions);
    completed_ += count;
    return count;
  }
  void wake() override { queue_.wake(); }

  std::unique_ptr<FakeTier> tier_;
  BlockQueue& queue_;
  std::vector<Seen> seen_;
  std::mutex mutex_;  // guards waits_
  std::condition_variable waited_;
  std::vector<Waited> waits_;
  std::size_t completed_ = 0;
};

}  // namespace terrace::testing

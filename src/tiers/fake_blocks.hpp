// SPDX-License-Identifier: Apache-2.0
// The queue of a fake block tier. It moves bytes only when a completion is delivered, in a shuffled order,
// and checks every precondition, so that a user who relies on more than the contract fails in tests.
#pragma once

#include <condition_variable>
#include <mutex>
#include <random>
#include <vector>

#include "tiers/fault_script.hpp"

namespace terrace {

class FakeQueue final : public BlockQueue {
 public:
  /// `shared` guards the bytes, which several queues may reach. pre: all of them outlive the queue
  FakeQueue(std::span<std::byte> bytes, std::mutex& shared, Bytes block, FaultScript& script)
      : bytes_(bytes), shared_(shared), block_(block), script_(script) {}

  Bytes block_size() const noexcept override { return block_; }
  Bytes memory_alignment() const noexcept override { return {64}; }
  Bytes request_size() const noexcept override { return block_ * 16; }
  unsigned depth() const noexcept override { return 8; }

  bool register_memory(std::span<std::byte>) override { return false; }
  void submit(const BlockRequest& request) override;
  std::size_t wait(std::span<BlockCompletion> completions) override;
  void wake() override;

 private:
  using Clock = std::chrono::steady_clock;
  struct InFlight {
    BlockRequest request;
    std::optional<FakeTier::Fault> fault;
    Clock::time_point ready;
  };

  void require_valid(const BlockRequest& request) const;
  BlockCompletion complete(const InFlight& work);
  std::size_t deliver(std::span<BlockCompletion> completions);

  const std::span<std::byte> bytes_;
  std::mutex& shared_;  // taken after mutex_
  const Bytes block_;
  FaultScript& script_;

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<InFlight> in_flight_;
  bool woken_ = false;
  std::mt19937_64 shuffle_{1};
};

}  // namespace terrace

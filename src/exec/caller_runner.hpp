// SPDX-License-Identifier: Apache-2.0
// CallerRunner: carries out a plan whose fastest tier is memory of the caller, as a framework with an
// allocator of its own has it.
//
// The caller is told when a tensor comes into fast memory and when it leaves, and runs the kernels; transfers
// to and from the slower tiers, which this opens, go directly to the caller's addresses. The verifier has
// proven which tensors exist at every moment: their bytes are within the budget, whatever their addresses.
// One thread at a time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "terrace/borrowed.hpp"
#include "terrace/simulate.hpp"
#include "terrace/verify.hpp"

namespace terrace {

/// What a caller is told, and asked for. Whatever these throw ends the step.
struct CallerMemory {
  enum class Filled { by_kernel, by_transfer };

  std::function<void(const Run&)> run;
  /// Returns where the bytes begin, which only counts for what a transfer fills.
  std::function<std::byte*(TensorId, Filled)> alloc;
  std::function<void(TensorId)> release;
  std::function<std::byte*(TensorId)> address;  ///< of one that a transfer is about to read
};

class CallerRunner {
 public:
  /// Opens the slower tiers to what the plan needs of them. Fails where one has no spec or cannot be opened,
  /// and where the plan has kernels use one of them in place.
  static Result<std::unique_ptr<CallerRunner>> open(Graph graph, Machine machine, VerifiedPlan plan,
                                                    CallerMemory memory);

  const Graph& graph() const { return graph_; }
  const Machine& machine() const { return machine_; }

  /// Bytes of a tensor between steps, where it starts steps in a slower tier; fails where it does not.
  Result<void> write(TensorId tensor, std::span<const std::byte> from);
  Result<void> read(TensorId tensor, std::span<std::byte> to);

  /// What fails ends the step: everything that was started has ended, too, when the exception leaves.
  void step();
  const Timeline& timeline() const { return timeline_; }

 private:
  using Clock = std::chrono::steady_clock;

  CallerRunner(Graph graph, Machine machine, VerifiedPlan plan, CallerMemory memory);
  Result<void> open_tiers();
  void look_ahead();
  void begin_step();
  std::optional<std::uint64_t>& offset(TensorId tensor, TierId tier);
  /// Where a value lies, for the mover. Host memory is `memory`.
  Extent extent(TensorId tensor, TierId tier, std::byte* memory);
  void perform(std::size_t instruction, const Alloc& alloc);
  void perform(std::size_t instruction, const Free& free);
  void perform(std::size_t instruction, const Copy& copy);
  void perform(std::size_t instruction, const Wait& wait);
  void perform(std::size_t instruction, const Run& run);
  void finish(std::uint32_t ticket);
  Seconds now() const { return Clock::now() - begin_; }
  Result<Extent> between_steps(TensorId tensor, std::size_t bytes) const;

  const Graph graph_;
  const Machine machine_;
  const VerifiedPlan plan_;
  const CallerMemory memory_;
  std::unique_ptr<Tier> host_;
  std::vector<std::unique_ptr<Tier>> tiers_;  // by tier of the machine; nullptr: the caller's, or not needed
  std::vector<TierId> numbers_;               // of the tiers in the mover, where host memory is the first
  std::vector<bool> filled_;                  // by instruction: an alloc that a transfer fills
  std::vector<std::optional<std::uint64_t>> offsets_;  // of each tensor in each tier
  std::vector<std::byte*> places_;  // of each tensor that a transfer brought into the caller's memory
  struct Started {
    std::uint32_t ticket = 0;
    std::size_t copy = 0;
    Transfer transfer;
  };
  std::vector<Started> transfers_;
  std::vector<Bytes> held_;
  Clock::time_point begin_;
  Timeline timeline_;
  std::unique_ptr<Mover> mover_;  // last: it uses the tiers until it ends
};

}  // namespace terrace

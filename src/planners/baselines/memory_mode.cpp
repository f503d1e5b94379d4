// SPDX-License-Identifier: Apache-2.0
#include "planners/baselines/memory_mode.hpp"

#include <algorithm>

#include "plan/region_size.hpp"
#include "planners/baselines/in_place.hpp"

namespace terrace {
namespace {

/// Neighbouring lines are loaded and replaced together, so lines coarser than the hardware's give the same
/// result with less work.
constexpr std::uint64_t kSmallestLine = 64, kLargestLine = 64 << 10, kLines = 4096;

struct Lines {
  std::uint64_t hits = 0, misses = 0, written_back = 0;
};

class DirectMapped {
 public:
  explicit DirectMapped(Bytes capacity) {
    while (line_ < kLargestLine && capacity.count / (2 * line_) >= kLines) line_ *= 2;
    slots_.resize(std::max<std::uint64_t>(1, capacity.count / line_));
  }
  Bytes line() const { return {line_}; }

  void touch(std::uint64_t offset, Bytes bytes, bool writes, Lines& lines) {
    if (bytes.count == 0) return;
    const std::uint64_t end = (offset + bytes.count - 1) / line_;
    for (std::uint64_t line = offset / line_; line <= end; ++line) {
      Slot& slot = slots_[line % slots_.size()];
      if (slot.line == line) {
        ++lines.hits;
      } else {
        ++lines.misses;
        if (slot.dirty) ++lines.written_back;
        slot = {line, false};
      }
      slot.dirty = slot.dirty || writes;
    }
  }

 private:
  struct Slot {
    std::uint64_t line = ~std::uint64_t{0};
    bool dirty = false;
  };
  std::uint64_t line_ = kSmallestLine;
  std::vector<Slot> slots_;
};

/// Runs a plan in which everything lies in one tier through the model of the cache.
class CachedStep {
 public:
  CachedStep(const PlanRequest& request, const Plan& plan, DeadMemory dead)
      : request_(request),
        plan_(plan),
        dead_(dead),
        clock_(request.graph, request.machine, request.profile),
        cache_(request.budget[0]),
        offsets_(request.graph.tensors.size()) {
    for (const Alloc& region : plan.start) offsets_[region.tensor.index] = region.offset;
  }

  MemoryMode run(TierId memory) {
    MemoryMode result;
    result.memory = memory;
    const MachineTier& slow = request_.machine[memory];
    next_ = 0;
    for (const Alloc& region : plan_.start)
      next_ = std::max(next_, region.offset + region_size(request_.graph[region.tensor], slow).count);
    for (const Instruction& instruction : plan_.instructions) {
      if (const auto* alloc = std::get_if<Alloc>(&instruction)) {
        offsets_[alloc->tensor.index] =
            dead_ == DeadMemory::reused ? alloc->offset : next_address(alloc->tensor, slow);
      } else if (const auto* run = std::get_if<Run>(&instruction)) {
        const Lines lines = touched_by(request_.graph[run->kernel]);
        const Bytes read = cache_.line() * lines.misses, written = cache_.line() * lines.written_back;
        const std::vector<TierId> fast(run->tiers.size(), TierId{0});
        // Lines are written back as conflicts come: piece by piece, whatever the kernel does (003 section V).
        const BytesPerSecond write = slow.tiled_write.value_or(slow.write);
        result.step += clock_.time(run->kernel, run->variant, fast) + read / slow.read + written / write;
        result.hits += cache_.line() * lines.hits;
        result.misses += read;
        result.written_back += written;
      }
    }
    return result;
  }

 private:
  /// The collector frees all where memory ends, too.
  std::uint64_t next_address(TensorId tensor, const MachineTier& slow) {
    const std::uint64_t bytes = region_size(request_.graph[tensor], slow).count;
    if (next_ + bytes > slow.capacity.count) next_ = 0;
    next_ += bytes;
    return next_ - bytes;
  }

  Lines touched_by(const Kernel& kernel) {
    Lines lines;
    for (const Operand& operand : kernel.inputs) {
      cache_.touch(offsets_[operand.tensor.index], operand.touched, false, lines);
    }
    for (const Operand& operand : kernel.outputs) {
      cache_.touch(offsets_[operand.tensor.index], operand.touched, true, lines);
    }
    if (kernel.workspace) {
      const Bytes size = request_.graph[kernel.workspace].bytes;
      cache_.touch(offsets_[kernel.workspace.index], size, true, lines);
    }
    return lines;
  }

  const PlanRequest& request_;
  const Plan& plan_;
  DeadMemory dead_;
  std::uint64_t next_ = 0;  ///< address that was not used in this step
  KernelClock clock_;
  DirectMapped cache_;
  std::vector<std::uint64_t> offsets_;  ///< by tensor
};

}  // namespace

Result<MemoryMode> predict_memory_mode(const PlanRequest& request, DeadMemory dead) {
  const auto plan = plan_all_slow(request);
  if (!plan) return plan.error();
  TierId memory{};
  for (std::uint32_t tier = 1; tier < request.machine.tiers.size(); ++tier) {
    if (request.machine.tiers[tier].addressable) memory = {tier};
  }
  CachedStep step(request, *plan, dead);
  step.run(memory);
  return step.run(memory);
}

}  // namespace terrace

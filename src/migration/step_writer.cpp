#include "migration/step_writer.hpp"

namespace terrace {

EvictionIndex::EvictionIndex(std::span<const Eviction> evictions, std::uint32_t kernels,
                             std::uint32_t Eviction::*end)
    : begin_(kernels + 2) {
  for (const Eviction& eviction : evictions) {
    if (eviction.*end != kNever) ++begin_[eviction.*end + 1];
  }
  for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
  order_.resize(begin_.back());
  std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
  for (std::uint32_t i = 0; i < evictions.size(); ++i) {
    if (evictions[i].*end != kNever) order_[next[evictions[i].*end]++] = i;
  }
}

StepWriter::StepWriter(const PlanRequest& request, const StepUses& uses, const Residency& residency,
                       std::string planner)
    : request_(request), uses_(uses), residency_(residency), writer_(request, std::move(planner)) {}

Result<void> StepWriter::begin() {
  for (std::uint32_t i = 0; i < request_.graph.tensors.size(); ++i) {
    const Tensor& tensor = request_.graph.tensors[i];
    if (residency_.pinned[i] || is_given(tensor)) {
      writer_.start({i}, {0});
    } else if (tensor.persistent) {
      const auto tier = writer_.spill_tier({i});
      if (!tier) return tier.error();
      writer_.start({i}, *tier);
    }
  }
  return {};
}

Result<std::uint32_t> StepWriter::store(TensorId tensor) {
  const auto tier = writer_.spill_tier(tensor);
  if (!tier) return tier.error();
  if (!writer_.has(tensor, *tier)) writer_.alloc(tensor, *tier);
  return writer_.copy(tensor, {0}, *tier);
}

void StepWriter::drop(TensorId tensor) { writer_.free(tensor, {0}); }

std::uint32_t StepWriter::fetch(TensorId tensor) {
  const TierId from = writer_.spill_tier(tensor).value();
  writer_.alloc(tensor, {0});
  return writer_.copy(tensor, from, {0});
}

Bytes StepWriter::missing(std::uint32_t kernel) const {
  Bytes bytes{};
  for (const Use& use : uses_.of(kernel)) {
    if (!is_fast(use.tensor)) bytes += fast_size(use.tensor);
  }
  return bytes;
}

void StepWriter::run(std::uint32_t kernel) {
  for (const Use& use : uses_.of(kernel)) {
    if (!is_fast(use.tensor)) writer_.alloc(use.tensor, {0});
  }
  writer_.run({kernel}, TierId{0});
  for (const Use& use : uses_.of(kernel)) {
    const bool persistent = request_.graph[use.tensor].persistent;
    const bool over = use.next == kNever && !persistent;
    if (over) drop(use.tensor);
    if (over || (use.writes && !persistent)) end_spilled(use.tensor);
  }
}

void StepWriter::recompute(KernelId kernel) {
  const Kernel& what = request_.graph[kernel];
  writer_.alloc(what.outputs[0].tensor, {0});
  if (what.workspace) writer_.alloc(what.workspace, {0});
  writer_.run(kernel, TierId{0});
  if (what.workspace) drop(what.workspace);
}

void StepWriter::end_spilled(TensorId tensor) {
  for (std::uint32_t i = 1; i < request_.machine.tiers.size(); ++i) {
    if (writer_.has(tensor, {i})) writer_.free(tensor, {i});
  }
}

Draft StepWriter::finish(PackingEffort effort) {
  for (std::uint32_t i = 0; i < request_.graph.tensors.size(); ++i) {
    const Tensor& tensor = request_.graph.tensors[i];
    if (is_given(tensor) && !is_fast({i})) writer_.restore({i}, {0});
    if (!tensor.persistent) end_spilled({i});
  }
  return writer_.finish(effort);
}

}  // namespace terrace

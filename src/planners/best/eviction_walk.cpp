// SPDX-License-Identifier: Apache-2.0
#include "planners/best/eviction_walk.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace terrace::best {
namespace {

/// Tensors below this share of fast memory are many and matter little.
constexpr double kSmall = 1e-4;
/// Of fast memory: what packing loses.
constexpr double kReserve = 0.03;
/// Of the step: what is needed sooner counts as needed then.
constexpr double kSoon = 1e-4;
/// How often something may run again, as a multiple of the graph's kernels, before a walk is given up.
constexpr std::size_t kMostRuns = 4;

}  // namespace

EvictionWalk::EvictionWalk(const PlanRequest& request, const StepUses& uses, const bounds::Problem& problem)
    : graph_(request.graph),
      uses_(uses),
      problem_(problem),
      closure_(request.graph, uses, request.machine),
      reads_(request.graph.tensors.size()),
      touches_(request.graph.tensors.size()) {
  for (std::uint32_t k = 0; k <= uses.kernels(); ++k) {
    for (const Use& use : uses.of(k)) {
      if (use.reads) reads_[use.tensor.index].push_back(k);
      ++touches_[use.tensor.index];
    }
  }
  begin_.push_back(0);
  for (const bounds::BoundKernel& kernel : problem.kernels) begin_.push_back(begin_.back() + kernel.fast);
  for (std::uint32_t i = 0; i < graph_.tensors.size(); ++i) {
    const auto& writers = closure_.writers({i});
    const bool forward = std::all_of(writers.begin(), writers.end(), [&](std::uint32_t k) {
      return graph_.kernels[k].phase == Phase::forward;
    });
    const auto bytes = static_cast<double>(graph_.tensors[i].bytes.count);
    if (forward && !writers.empty() && closure_.can_go({i}) && bytes > kSmall * problem.capacity)
      candidates_.push_back(i);
  }
}

bool EvictionWalk::is_away(std::uint32_t tensor, StatesAway states) const {
  if (!graph_.tensors[tensor].persistent || states == StatesAway::none) return false;
  return states == StatesAway::all || touches_[tensor] == 1;
}

double EvictionWalk::bytes_away(StatesAway states) const {
  double bytes = 0;
  for (std::uint32_t i = 0; i < graph_.tensors.size(); ++i) {
    if (is_away(i, states)) bytes += static_cast<double>(graph_.tensors[i].bytes.count);
  }
  return bytes;
}

void EvictionWalk::begin(const Options& options) {
  const std::size_t tensors = graph_.tensors.size();
  options_ = options;
  used_ = 0;
  at_hand_.assign(tensors, false);
  locks_.assign(tensors, 0);
  need_.assign(tensors, kNever);
  batches_.clear();
  double moved = 0;  // bytes of states, each way
  for (std::uint32_t i = 0; i < tensors; ++i) {
    const Tensor& tensor = graph_.tensors[i];
    if (is_away(i, options.states)) {
      moved += static_cast<double>(tensor.bytes.count) * touches_[i];
    } else if (tensor.persistent || is_given(tensor)) {
      take(i);
    }
  }
  const double slowest = std::max(problem_.out.busy, problem_.in.busy);
  const double all = begin_.back() / slowest;
  carried_ = std::max(0.0, 1 - moved / all) * options.hidden / slowest;
}

/// How many bytes may be alive while the kernel runs.
double EvictionWalk::room_at(std::uint32_t kernel) const {
  const double hidden = carried_ * std::min(begin_[kernel], begin_.back() - begin_[kernel]);
  return (1 - kReserve) * problem_.capacity + hidden;
}

std::uint32_t EvictionWalk::next_read(std::uint32_t tensor, std::uint32_t kernel) const {
  const auto& reads = reads_[tensor];
  const auto found = std::lower_bound(reads.begin(), reads.end(), kernel);
  return found == reads.end() ? kNever : *found;
}

void EvictionWalk::take(std::uint32_t tensor) {
  if (at_hand_[tensor]) return;
  at_hand_[tensor] = true;
  used_ += static_cast<double>(graph_.tensors[tensor].bytes.count);
}

void EvictionWalk::drop(std::uint32_t tensor) {
  if (!at_hand_[tensor]) return;
  at_hand_[tensor] = false;
  used_ -= static_cast<double>(graph_.tensors[tensor].bytes.count);
}

std::vector<RecomputeBatch> EvictionWalk::run(const Options& options) {
  begin(options);
  std::size_t runs = 0;
  for (std::uint32_t k = 0; k < uses_.kernels(); ++k) {
    const auto uses = uses_.of(k);
    for (const Use& use : uses) ++locks_[use.tensor.index];
    find_needs(k);
    for (const Use& use : uses) {
      if (!use.reads || at_hand_[use.tensor.index] || graph_[use.tensor].persistent) continue;
      if (!recompute(use.tensor, k)) return {};
      runs += batches_.back().kernels.size();
    }
    if (runs > kMostRuns * uses_.kernels()) return {};
    run_kernel(k, k);
    for (const Use& use : uses) {
      --locks_[use.tensor.index];
      const Tensor& tensor = graph_[use.tensor];
      const bool over = use.next == kNever || !use.next_reads;
      if (tensor.persistent ? is_away(use.tensor.index, options.states) : over && !is_given(tensor))
        drop(use.tensor.index);
    }
  }
  return std::move(batches_);
}

/// Returns whether it is possible. What only that needs is gone after it.
bool EvictionWalk::recompute(TensorId tensor, std::uint32_t before) {
  const auto at_hand = [&](TensorId one) { return at_hand_[one.index]; };
  if (!closure_.collect(tensor, before, at_hand, [](std::uint32_t) { return true; })) return false;
  RecomputeBatch batch{before, closure_.kernels(), closure_.tensors()};
  for (const TensorId made : batch.tensors) drop(made.index);
  for (const std::uint32_t k : batch.kernels) {
    for (const Use& use : uses_.of(k)) ++locks_[use.tensor.index];
  }
  for (const std::uint32_t k : batch.kernels) {
    run_kernel(k, before);
    for (const Use& use : uses_.of(k)) {
      const std::uint32_t i = use.tensor.index;
      if (--locks_[i] > 0) continue;
      const Tensor& what = graph_[use.tensor];
      const bool over = next_read(i, before) == kNever;
      if (what.persistent ? is_away(i, options_.states) : over && !is_given(what)) drop(i);
    }
  }
  batches_.push_back(std::move(batch));
  return true;
}

void EvictionWalk::run_kernel(std::uint32_t kernel, std::uint32_t now) {
  double missing = 0;
  for (const Use& use : uses_.of(kernel)) {
    if (!at_hand_[use.tensor.index]) missing += static_cast<double>(graph_[use.tensor].bytes.count);
  }
  make_room(missing, now);
  for (const Use& use : uses_.of(kernel)) {
    take(use.tensor.index);
    need_[use.tensor.index] = next_read(use.tensor.index, now);
  }
}

/// Evicts what it can: what does not fit even so has to move.
void EvictionWalk::make_room(double bytes, std::uint32_t now) {
  const double room = room_at(now);
  while (used_ + bytes > room) {
    const std::uint32_t evicted = cheapest(now);
    if (evicted == kNever) return;
    drop(evicted);
    need_inputs(evicted);
  }
}

/// A value is needed when a kernel reads it, or when something that is gone is recomputed from it.
void EvictionWalk::find_needs(std::uint32_t now) {
  for (const std::uint32_t i : candidates_) need_[i] = next_read(i, now);
  for (const std::uint32_t i : candidates_) {
    const bool made = !closure_.writers({i}).empty() && closure_.writers({i}).front() < now;
    if (made && !at_hand_[i] && need_[i] != kNever) need_inputs(i);
  }
}

void EvictionWalk::need_inputs(std::uint32_t needed) {
  const std::uint32_t when = need_[needed];
  if (when == kNever || when >= uses_.kernels()) return;
  const auto at_hand = [&](TensorId one) { return at_hand_[one.index]; };
  if (!closure_.collect({needed}, when, at_hand, [](std::uint32_t) { return true; })) return;
  for (const std::uint32_t k : closure_.kernels()) {
    for (const Operand& input : graph_.kernels[k].inputs)
      need_[input.tensor.index] = std::min(need_[input.tensor.index], when);
  }
}

/// The tensor with the least time to recompute it for its bytes and for how long it is not needed.
std::uint32_t EvictionWalk::cheapest(std::uint32_t now) {
  std::uint32_t found = kNever;
  double least = std::numeric_limits<double>::infinity();
  for (const std::uint32_t i : candidates_) {
    if (!at_hand_[i] || locks_[i] > 0) continue;
    const std::uint32_t when = need_[i];
    if (when == kNever || when >= uses_.kernels()) {
      if (when == kNever) return i;  // nobody needs it any more
      continue;
    }
    const double away = std::max(begin_[when] - begin_[now], kSoon * begin_.back());
    const double gain =
        static_cast<double>(graph_.tensors[i].bytes.count) * std::pow(away, options_.patience);
    double seconds = 0;
    const auto may_run = [&](std::uint32_t k) {
      seconds += problem_.kernels[k].fast;
      return seconds < least * gain;
    };
    const auto at_hand = [&](TensorId one) { return one.index != i && at_hand_[one.index]; };
    if (!closure_.collect({i}, when, at_hand, may_run)) continue;
    least = seconds / gain;
    found = i;
  }
  return found;
}

}  // namespace terrace::best

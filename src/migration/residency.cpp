// SPDX-License-Identifier: Apache-2.0
#include "migration/residency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "plan/region_size.hpp"

namespace terrace {
namespace {

constexpr Bytes kSmall{64 << 10};

/// Walks over the kernels of a step once.
class Walk {
 public:
  Walk(const PlanRequest& request, const StepUses& uses, Bytes capacity, const VictimRule& rule,
       const std::vector<bool>& fixed, const std::vector<bool>& pinned)
      : graph_(request.graph),
        uses_(uses),
        capacity_(capacity),
        rule_(rule),
        fixed_(fixed),
        state_(graph_.tensors.size()) {
    for (std::size_t i = 0; i < state_.size(); ++i)
      state_[i].size = region_size(graph_.tensors[i], request.machine.tiers[0]);
    residency_.pinned = pinned;
  }

  Result<Residency> run() {
    begin();
    for (std::uint32_t kernel = 0; kernel <= uses_.kernels(); ++kernel) {
      if (auto room = make_room(kernel); !room) return room.error();
      enter(kernel);
      leave(kernel);
    }
    end();
    return std::move(residency_);
  }

  /// Returns whether a tensor never had to leave.
  bool stayed(std::size_t tensor) const { return !state_[tensor].left; }

 private:
  struct State {
    Bytes size;
    std::uint32_t last_use = kNever, next_use = kNever;
    bool resident = false, stored = false, next_reads = false, left = false;
    double priority = 0;
  };
  struct Entry {
    double priority;
    std::uint32_t tensor;
    bool operator<(const Entry& other) const {
      return priority != other.priority ? priority < other.priority : tensor > other.tensor;
    }
  };

  void begin() {
    for (std::uint32_t i = 0; i < state_.size(); ++i) {
      const Tensor& tensor = graph_.tensors[i];
      State& state = state_[i];
      state.next_use = uses_.first({i});
      state.next_reads = uses_.first_reads({i});
      if (residency_.pinned[i] || is_given(tensor)) {
        settle(i);
      } else if (tensor.persistent) {
        state.stored = true;
        if (state.next_use != kNever) {
          residency_.evictions.push_back({{i}, kNever, 0, state.next_use, false, state.next_reads});
        }
      }
    }
  }

  Result<void> make_room(std::uint32_t kernel) {
    Bytes need{};
    for (const Use& use : uses_.of(kernel)) {
      State& state = state_[use.tensor.index];
      state.last_use = kernel;  // marks operands: they are not in their own way
      if (!state.resident) need += state.size;
    }
    while (used_ + need > capacity_) {
      if (victims_.empty()) return too_large(kernel, used_ + need);
      const Entry entry = victims_.top();
      victims_.pop();
      const State& state = state_[entry.tensor];
      const bool valid = state.resident && state.priority == entry.priority;
      if (valid && state.last_use != kernel) evict(entry.tensor, kernel);
    }
    return {};
  }

  /// An operand that was passed over as a victim is pushed again here, with its new priority.
  void enter(std::uint32_t kernel) {
    for (const Use& use : uses_.of(kernel)) {
      State& state = state_[use.tensor.index];
      state.next_use = use.next;
      state.next_reads = use.next_reads;
      if (use.writes) state.stored = false;
      settle(use.tensor.index);
    }
  }

  /// Removes what nobody needs any more.
  void leave(std::uint32_t kernel) {
    for (const Use& use : uses_.of(kernel)) {
      const bool needed = use.next != kNever || graph_[use.tensor].persistent || kernel == uses_.kernels();
      if (!needed) remove(use.tensor.index);
    }
  }

  void end() {
    for (std::uint32_t i = 0; i < state_.size(); ++i) {
      State& state = state_[i];
      if (!state.resident || residency_.pinned[i] || !graph_.tensors[i].persistent) continue;
      const std::uint32_t end = uses_.kernels();
      residency_.evictions.push_back({{i}, state.last_use, end, end, !state.stored, false});
    }
  }

  void evict(std::uint32_t tensor, std::uint32_t kernel) {
    State& state = state_[tensor];
    const bool persistent = graph_.tensors[tensor].persistent;
    const bool within = state.next_use != kNever;
    const bool needed = within ? state.next_reads : persistent;
    residency_.evictions.push_back({{tensor},
                                    state.last_use,
                                    kernel,
                                    within ? state.next_use : uses_.kernels(),
                                    needed && !state.stored,
                                    within && needed});
    state.left = true;
    state.stored = state.stored || needed;
    remove(tensor);
  }

  void settle(std::uint32_t tensor) {
    State& state = state_[tensor];
    if (!state.resident) used_ += state.size;
    state.resident = true;
    if (fixed_[tensor]) return;
    const bool beyond = state.next_use == kNever;
    const std::uint32_t next =
        beyond ? uses_.kernels() + std::min(uses_.first({tensor}), uses_.kernels()) : state.next_use;
    state.priority = rule_({{tensor}, state.last_use == kNever ? 0 : state.last_use, next, state.size});
    victims_.push({state.priority, tensor});
  }

  void remove(std::uint32_t tensor) {
    State& state = state_[tensor];
    if (state.resident) used_ -= state.size;
    state.resident = false;
  }

  Error too_large(std::uint32_t kernel, Bytes need) const {
    const std::string what =
        kernel == uses_.kernels() ? std::string("the step's end") : graph_.kernels[kernel].name;
    return {ErrorCode::too_large,
            fmt::format("{} needs {} of fast memory at once and {} is given: {} are missing", what,
                        readable(need), readable(capacity_), readable(need - capacity_))};
  }

  const Graph& graph_;
  const StepUses& uses_;
  Bytes capacity_, used_;
  const VictimRule& rule_;
  const std::vector<bool>& fixed_;  ///< never leave
  std::vector<State> state_;
  std::priority_queue<Entry> victims_;
  Residency residency_;
};

/// Returns, by tensor, whether it never leaves. With a single tier there is none to leave for.
std::vector<bool> always_pinned(const PlanRequest& request) {
  const Graph& graph = request.graph;
  const bool alone = request.machine.tiers.size() < 2;
  std::vector<bool> pinned = results_that_stay(graph);
  for (std::size_t i = 0; i < pinned.size(); ++i) {
    // Tokens take no room, so that carrying them would be for nothing.
    const Tensor& tensor = graph.tensors[i];
    pinned[i] = pinned[i] || (tensor.persistent && (alone || tensor.bytes == Bytes{}));
  }
  return pinned;
}

}  // namespace

std::vector<bool> results_that_stay(const Graph& graph) {
  std::vector<bool> stay(graph.tensors.size());
  for (const TensorId result : graph.results) {
    stay[result.index] = graph[result].persistent || graph[result].kind == TensorKind::input;
  }
  return stay;
}

double farthest_next_use(const Candidate& candidate) {
  const double small = candidate.size < kSmall ? -1e12 : 0;
  return small + candidate.next_use;
}

double least_recently_used(const Candidate& candidate) { return -double{1} * candidate.last_use; }

Result<Residency> decide_residency(const PlanRequest& request, const StepUses& uses, Bytes capacity,
                                   const VictimRule& rule) {
  constexpr int kPasses = 16;
  const std::vector<bool> fixed = always_pinned(request);
  std::vector<bool> pinned = fixed;
  Result<Residency> without = Walk(request, uses, capacity, rule, fixed, pinned).run();
  if (!without) return without;
  // Begin with every persistent tensor in fast memory and let go of those that had to leave: the set only
  // shrinks.
  for (std::size_t i = 0; i < pinned.size(); ++i) pinned[i] = fixed[i] || request.graph.tensors[i].persistent;
  for (int pass = 0; pass < kPasses; ++pass) {
    Walk walk(request, uses, capacity, rule, fixed, pinned);
    Result<Residency> residency = walk.run();
    if (!residency) break;
    std::vector<bool> stayed = pinned;
    for (std::size_t i = 0; i < stayed.size(); ++i) stayed[i] = pinned[i] && walk.stayed(i);
    if (stayed == pinned) return residency;
    pinned = std::move(stayed);
  }
  return without;
}

Residency nothing_stays(const PlanRequest& request, const StepUses& uses) {
  const Graph& graph = request.graph;
  Residency residency{always_pinned(request), {}};
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    const bool given = is_given(graph.tensors[i]);
    if (residency.pinned[i] || !(given || graph.tensors[i].persistent)) continue;
    const bool reads = uses.first_reads({i});
    const std::uint32_t first = std::min(uses.first({i}), uses.kernels());
    residency.evictions.push_back({{i}, kNever, 0, first, given && reads, reads});
  }
  std::vector<bool> stored(graph.tensors.size());
  for (const Eviction& eviction : residency.evictions) stored[eviction.tensor.index] = true;
  for (std::uint32_t k = 0; k < uses.kernels(); ++k) {
    for (const Use& use : uses.of(k)) {
      const bool persistent = graph[use.tensor].persistent, within = use.next != kNever;
      if (residency.pinned[use.tensor.index] || (!within && !persistent)) continue;
      if (use.writes) stored[use.tensor.index] = false;
      const bool needed = within ? use.next_reads : persistent;
      residency.evictions.push_back({use.tensor, k, k + 1, within ? use.next : uses.kernels(),
                                     needed && !stored[use.tensor.index], within && needed});
      if (needed) stored[use.tensor.index] = true;
    }
  }
  return residency;
}

}  // namespace terrace

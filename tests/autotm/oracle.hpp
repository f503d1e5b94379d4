// Every way to place and move the tensors of a very small graph, tried one after the other.
//
// The dumb oracle of AutoTM's programs: it knows tensors, moments and the clock, and nothing of flow graphs,
// configurations or rows. At any boundary between two moments a tensor may be read in, written out or
// dropped; beside any kernel it may move, too, if it does so at all. Two tiers.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "plan/step_uses.hpp"
#include "planners/autotm/model/instance.hpp"
#include "profile/roofline.hpp"

namespace terrace::autotm {

class Oracle {
 public:
  Oracle(const PlanRequest& request, Formulation formulation)
      : request_(request),
        graph_(request.graph),
        formulation_(formulation),
        clock_(request.graph, request.machine, request.profile),
        uses_(request.graph),
        end_(static_cast<std::uint32_t>(graph_.kernels.size()) + 1) {
    for (std::uint32_t i = 0; i < graph_.tensors.size(); ++i) {
      if (graph_.tensors[i].kind != TensorKind::workspace) list_lives(i);
    }
    least_ = clock_.fast_step();
  }

  /// How many combinations there are at most.
  double combinations() const {
    double all = 1;
    for (const auto& lives : lives_) all *= static_cast<double>(std::max<std::size_t>(1, lives.size()));
    return all;
  }

  /// Infinite where nothing fits.
  Seconds best() {
    std::vector<const Life*> chosen;
    occupied_.assign(end_ + 1, 0);
    choose(chosen, Seconds{0});
    return best_;
  }

 private:
  struct Life {
    TensorId tensor;
    std::vector<bool> fast;       ///< by moment: takes fast memory
    std::vector<bool> used_fast;  ///< by moment: is used there
    std::vector<Seconds> beside;  ///< by moment
    Seconds waiting{0};
  };
  struct State {
    bool fast = false, current = false;  ///< in fast memory; the slow copy is current
  };

  bool usable_slow() const { return request_.machine.tiers[1].addressable; }
  bool is_result(TensorId id) const {
    return std::find(graph_.results.begin(), graph_.results.end(), id) != graph_.results.end();
  }
  const Use* use_at(TensorId id, std::uint32_t moment) const {
    if (moment == 0) return nullptr;
    for (const Use& use : uses_.of(moment - 1)) {
      if (use.tensor == id) return &use;
    }
    return nullptr;
  }
  /// Whether what the tensor holds before this moment is ever needed.
  bool is_needed(TensorId id, std::uint32_t moment) const {
    for (std::uint32_t m = moment; m <= end_; ++m) {
      if (const Use* use = use_at(id, m)) return use->reads;
    }
    return graph_[id].persistent;
  }
  std::uint32_t last_use(TensorId id) const {
    std::uint32_t last = 0;
    for (std::uint32_t m = 1; m <= end_; ++m) {
      if (use_at(id, m) != nullptr) last = m;
    }
    return last;
  }

  void list_lives(std::uint32_t i) {
    const TensorId id{i};
    const bool given = is_given(graph_.tensors[i]),
               kept = graph_.tensors[i].persistent || (given && is_result(id));
    const std::uint32_t first = given || kept ? 0 : uses_.first(id) + 1;
    if (uses_.first(id) == kNever && !given && !kept) return;
    lives_.emplace_back();
    const std::uint32_t last = kept ? end_ : last_use(id);
    Life life{id, std::vector<bool>(end_ + 1), std::vector<bool>(end_ + 1), std::vector<Seconds>(end_ + 1),
              Seconds{0}};
    stay_in_fast(life, first, last, kept);
    if (formulation_ == Formulation::fixed) {
      const bool never = last_use(id) == 0;
      if (usable_slow() || (kept && !given && never)) lives_.back().push_back(life);
    } else if (kept) {
      const bool may = !(given || is_result(id)) || usable_slow();
      if (may) live(life, {false, true}, 1, last);
    } else if (given) {
      if (usable_slow()) live(life, {false, true}, 1, last);
      life.fast[0] = life.fast[end_] = true;
      live(life, {true, false}, 1, last);
    } else {
      live(life, {}, first, last);
    }
    drop_dominated();
  }

  /// In fast memory from beginning to end: what static placement offers, and what is kept there.
  void stay_in_fast(Life life, std::uint32_t first, std::uint32_t last, bool kept) {
    if (formulation_ != Formulation::fixed && !kept) return;
    for (std::uint32_t m = first; m <= last; ++m) {
      life.fast[m] = true;
      life.used_fast[m] = use_at(life.tensor, m) != nullptr;
    }
    if (is_given(graph_[life.tensor])) life.fast[end_] = true;
    lives_.back().push_back(life);
  }

  Seconds copy(TensorId id, bool out) const {
    return request_.machine.link({out ? 0U : 1U}, {out ? 1U : 0U})->time(graph_[id].bytes);
  }

  /// Before moment `m`.
  void live(const Life& life, State state, std::uint32_t m, std::uint32_t last) {
    if (m > last) {
      lives_.back().push_back(life);
      return;
    }
    at(life, state, m, last);
    const bool needed = is_needed(life.tensor, m);
    if (state.fast && needed && !state.current) {
      Life moved = life;
      moved.waiting += copy(life.tensor, true);
      at(moved, {false, true}, m, last);
    }
    if (state.fast && (state.current || !needed)) at(life, {false, state.current}, m, last);
    if (!state.fast && state.current && needed) {
      Life moved = life;
      moved.waiting += copy(life.tensor, false);
      at(moved, {true, true}, m, last);
    }
  }

  /// At moment `m`.
  void at(Life life, State state, std::uint32_t m, std::uint32_t last) {
    const TensorId id = life.tensor;
    const Use* use = use_at(id, m);
    const bool kept_slow = m == end_ && (graph_[id].persistent || (is_given(graph_[id]) && is_result(id)));
    if (kept_slow) {
      if (!state.fast && state.current && (use == nullptr || usable_slow())) live(life, state, m + 1, last);
      return;
    }
    if (use == nullptr) {
      if (state.fast) life.fast[m] = true;
      live(life, state, m + 1, last);
      return move_beside(life, state, m, last);
    }
    if (state.fast || !use->reads) {
      Life in_fast = life;
      in_fast.fast[m] = in_fast.used_fast[m] = true;
      live(in_fast, {true, state.current && !use->writes}, m + 1, last);
      if (!use->writes) move_beside(in_fast, state, m, last);
    }
    if (usable_slow() && (state.current || !use->reads)) {
      if (state.fast && !use->reads) state.fast = false;
      if (state.fast) life.fast[m] = true;
      live(life, {state.fast && !use->writes, true}, m + 1, last);
    }
  }

  void move_beside(Life life, State state, std::uint32_t m, std::uint32_t last) {
    if (formulation_ != Formulation::asynchronous || m == 0 || m == end_) return;
    if (!is_needed(life.tensor, m + 1)) return;
    if (state.fast && !state.current) {
      life.beside[m] = copy(life.tensor, true);
      live(life, {false, true}, m + 1, last);
    } else if (!state.fast && state.current) {
      life.beside[m] = copy(life.tensor, false);
      life.fast[m] = true;
      live(life, {true, true}, m + 1, last);
    }
  }

  static bool dominates(const Life& a, const Life& b) {
    for (std::size_t m = 0; m < a.fast.size(); ++m) {
      if ((a.fast[m] && !b.fast[m]) || (b.used_fast[m] && !a.used_fast[m]) || a.beside[m] > b.beside[m])
        return false;
    }
    return a.waiting <= b.waiting;
  }

  void drop_dominated() {
    std::vector<Life> kept;
    for (const Life& life : lives_.back()) {
      if (std::any_of(kept.begin(), kept.end(), [&](const Life& other) { return dominates(other, life); }))
        continue;
      std::erase_if(kept, [&](const Life& other) { return dominates(life, other); });
      kept.push_back(life);
    }
    lives_.back() = std::move(kept);
  }

  std::uint64_t size(TensorId id) const {
    return round_up(graph_[id].bytes, request_.machine.tiers[0].granularity).count;
  }

  void choose(std::vector<const Life*>& chosen, Seconds waiting) {
    if (waiting + least_ >= best_) return;
    if (chosen.size() == lives_.size()) return finish(chosen, waiting);
    for (const Life& life : lives_[chosen.size()]) {
      const std::uint64_t bytes = size(life.tensor);
      bool fits = true;
      for (std::uint32_t m = 0; m <= end_; ++m) {
        if (life.fast[m]) occupied_[m] += bytes;
        fits = fits && occupied_[m] <= request_.budget[0].count;
      }
      chosen.push_back(&life);
      if (fits) choose(chosen, waiting + life.waiting);
      chosen.pop_back();
      for (std::uint32_t m = 0; m <= end_; ++m) {
        if (life.fast[m]) occupied_[m] -= bytes;
      }
    }
  }

  void finish(const std::vector<const Life*>& chosen, Seconds total) {
    for (std::uint32_t k = 0; k < graph_.kernels.size(); ++k) {
      Seconds beside{0};
      for (const Life* life : chosen) beside += life->beside[k + 1];
      total += std::max(beside, kernel_time(k, chosen));
    }
    best_ = std::min(best_, total);
  }

  bool has_room(const Kernel& kernel, std::uint32_t variant) const {
    if (!kernel.workspace || kernel.variants.empty()) return true;
    return kernel.variants[variant].workspace <= graph_[kernel.workspace].bytes;
  }

  Seconds kernel_time(std::uint32_t k, const std::vector<const Life*>& chosen) const {
    const Kernel& kernel = graph_.kernels[k];
    std::vector<TierId> tiers;
    for (const auto* list : {&kernel.inputs, &kernel.outputs}) {
      for (const Operand& operand : *list) {
        const auto found = std::find_if(chosen.begin(), chosen.end(),
                                        [&](const Life* life) { return life->tensor == operand.tensor; });
        tiers.push_back({(*found)->used_fast[k + 1] ? 0U : 1U});
      }
    }
    Seconds best{std::numeric_limits<double>::infinity()};
    for (std::uint32_t variant = 0; variant < variant_count(kernel); ++variant) {
      if (!has_room(kernel, variant)) continue;
      if (!kernel.workspace) {
        best = std::min(best, clock_.time({k}, variant, tiers));
        continue;
      }
      for (std::uint32_t where = 0; where < 2; ++where) {
        const bool fits = where == 0 ? occupied_[k + 1] + size(kernel.workspace) <= request_.budget[0].count
                                     : usable_slow();
        std::vector<TierId> all = tiers;
        all.push_back({where});
        if (fits) best = std::min(best, clock_.time({k}, variant, all));
      }
    }
    return best;
  }

  const PlanRequest& request_;
  const Graph& graph_;
  Formulation formulation_;
  KernelClock clock_;
  StepUses uses_;
  std::uint32_t end_;
  std::vector<std::vector<Life>> lives_;
  std::vector<std::uint64_t> occupied_;
  Seconds least_{0}, best_{std::numeric_limits<double>::infinity()};
};

}  // namespace terrace::autotm

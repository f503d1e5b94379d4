// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "planners/baselines/recompute.hpp"
#include "planners/baselines/swap_clock.hpp"
#include "planners/baselines/swapping.hpp"

namespace terrace {
namespace {

class Capuchin {
 public:
  Capuchin(const PlanRequest& request, const StepUses& uses, Bytes capacity)
      : request_(request),
        uses_(uses),
        capacity_(static_cast<std::int64_t>(capacity.count)),
        clock_(request, uses),
        recompute_(request, uses),
        absences_(absences(request, uses)),
        chosen_(absences_.size()),
        all_(bytes_if_all_stay(request, uses)) {
    count_bytes();
  }

  Result<Draft> write() {
    swap_unseen();
    while (over()) {
      if (!pay_for_one() && !press_one()) return Error{ErrorCode::too_large, "what can leave is too little"};
    }
    std::vector<Movement> movements = hidden_;
    movements.insert(movements.end(), seen_.begin(), seen_.end());
    return write_movements(request_, uses_, movements, "capuchin");
  }

 private:
  bool over() const { return full_before_.back() > 0; }

  /// Returns whether fast memory is too full at some moment at which the tensor could be out.
  bool helps(const Absence& absence) const {
    return std::any_of(absence.out.begin(), absence.out.end(), [&](const Stretch& stretch) {
      const std::uint32_t until = stretch.until + (stretch.until == uses_.kernels() ? 1 : 0);
      return full_before_[until] > full_before_[stretch.after + 1];
    });
  }

  Seconds spare(const Absence& absence) const {
    Seconds least = clock_.spare(absence.out[0], absence.size);
    for (const Stretch& stretch : absence.out) least = std::min(least, clock_.spare(stretch, absence.size));
    return least;
  }

  /// Returns how long the step waits if none of the absence's transfers is hidden behind kernels.
  Seconds transfers(const Absence& absence) const {
    Seconds time{0};
    for (const Stretch& stretch : absence.out) time += clock_.transfers(stretch, absence.size);
    return time;
  }

  /// Chooses swaps in the order of the time they have to spare, the most first, as long as kernels hide all
  /// of their transfers.
  void swap_unseen() {
    std::vector<std::uint32_t> order;
    std::vector<Seconds> spares;
    for (std::uint32_t i = 0; i < absences_.size(); ++i) {
      order.push_back(i);
      spares.push_back(spare(absences_[i]));
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return spares[a] > spares[b]; });
    for (const std::uint32_t i : order) {
      if (spares[i] < Seconds{0}) break;
      if (!helps(absences_[i])) continue;
      std::vector<Movement> more = hidden_;
      for (const Stretch& stretch : absences_[i].out) more.push_back({absences_[i].tensor, stretch});
      if (!clock_.hide(more, request_.graph)) continue;
      hidden_ = std::move(more);
      chosen_[i] = true;
      recompute_.leaves(absences_[i]);
      count_bytes();
    }
  }

  void count_bytes() {
    const auto bytes = bytes_left(request_, bytes_left(request_, all_, hidden_), seen_);
    full_before_.assign(1, 0);
    for (const std::int64_t during : bytes) {
      full_before_.push_back(full_before_.back() + (during > capacity_ ? 1 : 0));
    }
  }

  /// Chooses the swap or recomputation that costs the least time for each byte it frees. Returns whether
  /// there was one left to choose.
  bool pay_for_one() {
    std::uint32_t best = kNever;
    KernelId best_producer{};
    double best_price = 0;
    for (std::uint32_t i = 0; i < absences_.size(); ++i) {
      const Absence& absence = absences_[i];
      if (chosen_[i] || !recompute_.may_leave(absence) || !helps(absence)) continue;
      const KernelId producer = recompute_.producer(absence);
      const Seconds swap = transfers(absence);
      const bool computes = producer && clock_.kernel(producer.index) < swap;
      const double price =
          (computes ? clock_.kernel(producer.index) : swap).count() / static_cast<double>(absence.size.count);
      if (best != kNever && price >= best_price) continue;
      best = i;
      best_producer = computes ? producer : KernelId{};
      best_price = price;
    }
    if (best != kNever) pay_for(best, best_producer);
    return best != kNever;
  }

  void pay_for(std::uint32_t i, KernelId producer) {
    chosen_[i] = true;
    for (const Stretch& stretch : absences_[i].out) {
      seen_.push_back(on_demand(absences_[i], stretch));
      seen_.back().recomputed_by = producer;
    }
    if (producer) {
      recompute_.choose(absences_[i], producer);
    } else {
      recompute_.leaves(absences_[i]);
    }
    count_bytes();
  }

  /// Finds a hidden swap whose transfer occupies fast memory at a moment that is too full, and has the step
  /// wait for that transfer. Returns whether there was one.
  bool press_one() {
    const auto on_its_way = [&](const Movement& moves) {
      const std::uint32_t left = moves.stretch.after + 1;
      return full_before_[moves.gone] > full_before_[left] ||
             full_before_[moves.stretch.until] > full_before_[moves.back];
    };
    const auto found = std::find_if(hidden_.begin(), hidden_.end(), on_its_way);
    if (found == hidden_.end()) return false;
    const std::uint32_t out = found->stretch.after + 1;
    found->leave = found->gone = out;
    found->back = found->stretch.until;
    count_bytes();
    return true;
  }

  const PlanRequest& request_;
  const StepUses& uses_;
  std::int64_t capacity_;
  SwapClock clock_;
  Recompute recompute_;
  std::vector<Absence> absences_;
  std::vector<bool> chosen_;
  std::vector<Movement> hidden_, seen_;
  std::vector<std::int64_t> all_;           ///< bytes in fast memory during each kernel, if all stay
  std::vector<std::uint32_t> full_before_;  ///< by kernel: how many before it need more than there is
};

}  // namespace

Result<Plan> plan_capuchin(const PlanRequest& request) {
  const StepUses uses(request.graph);
  return plan_swapped(request, uses, "capuchin", [&](Bytes capacity) -> Result<Draft> {
    if (!SwapClock::possible(request)) return Error{ErrorCode::too_large, "there is no slower tier"};
    return Capuchin(request, uses, capacity).write();
  });
}

}  // namespace terrace

// What no plan that computes everything once can beat where kernels may use slow memory in place.
//
// `step_bound` says no more than the kernels' own time there. Here, as in src/plan/bounds.cpp, the step is
// seen from one kernel p: what is live then and does not fit in fast memory is in slow memory. Each byte of
// it was copied out before, or written there by its kernel, and is copied in after, or read there. A copy
// takes a share of the kernels' speed while it lasts; a kernel takes at least the time of its accesses to
// slow memory. Both parts of the step, before and after p, take at least their transfers and at least their
// kernels, so at least any mean of the two: for given weights of the means tensors are chosen one by one, the
// cheapest first, fractions allowed. Every kernel and every weight gives a bound; the greatest counts. It is
// for two tiers.
#pragma once

#include <algorithm>
#include <vector>

#include "plan/step_uses.hpp"
#include "terrace/planner.hpp"

namespace terrace::bench {

class InPlaceBound {
 public:
  explicit InPlaceBound(const PlanRequest& request)
      : request_(request), uses_(request.graph), clock_(request.graph, request.machine, request.profile) {
    const Link &out = *request.machine.link({0}, {1}), &in = *request.machine.link({1}, {0});
    out_ = {rate(out), out.compute_loss};
    in_ = {rate(in), in.compute_loss};
    // Both directions at once may cost kernels less than one after the other.
    const double sum = out.compute_loss + in.compute_loss;
    const double both = sum - out.compute_loss * in.compute_loss;
    const double ways = std::max(out.both_ways, in.both_ways);
    const double relief = sum > 0 ? std::min(1.0, both / (ways * sum)) : 1;
    out_.loss *= relief;
    in_.loss *= relief;
    find_items();
  }

  Seconds step() const {
    Seconds best = clock_.fast_step(), before{0};
    std::vector<std::vector<const Item*>> live(uses_.kernels());
    for (const Item& item : items_) {
      for (std::uint32_t k = item.first; k <= item.last; ++k) live[k].push_back(&item);
    }
    for (std::uint32_t p = 0; p < uses_.kernels(); ++p) {
      const Seconds kernel = clock_.fast({p}), after = clock_.fast_step() - before - kernel;
      double excess = -static_cast<double>(request_.budget[0].count);
      for (const Item* item : live[p]) excess += item->bytes;
      if (excess > 0) best = std::max(best, seen_from({before, kernel, after, excess}, live[p]));
      before += kernel;
    }
    return best;
  }

 private:
  struct Way {
    double rate = 0, loss = 0;
    /// Of copying or, with `lost` more kernel time, of using in place, where transfers count for `weight`.
    double least(double bytes, double weight, double lost) const {
      return std::min((weight + (1 - weight) * loss) * bytes / rate, (1 - weight) * lost);
    }
  };
  /// A tensor's contents while nobody touches them, or while one kernel does.
  struct Item {
    std::uint32_t first, last;
    double bytes;
    bool written = false, read = false;    ///< it was made in the step; it is read in it
    double write_lost = 0, read_lost = 0;  ///< what its kernels lose at least if they use it in place
    double used_lost = 0;                  ///< the same of the kernel that touches it now
  };
  struct Place {
    Seconds before, kernel, after;
    double excess;
  };

  static double rate(const Link& link) {
    double fastest = 0;
    for (const SizedRate& sized : link.rates) fastest = std::max(fastest, sized.rate.value);
    return fastest;
  }

  /// How much longer the kernel gets by reading, writing or both in slow memory.
  double lost(std::uint32_t kernel, TensorId tensor, bool reads, bool writes) const {
    if (kernel >= uses_.kernels()) return 0;
    const Kernel& what = request_.graph.kernels[kernel];
    Seconds slow{0};
    for (std::size_t i = 0; i < what.inputs.size(); ++i) {
      if (reads && what.inputs[i].tensor == tensor) slow += clock_.access({kernel}, i, {1});
    }
    for (std::size_t i = 0; i < what.outputs.size(); ++i) {
      if (writes && what.outputs[i].tensor == tensor)
        slow += clock_.access({kernel}, what.inputs.size() + i, {1});
    }
    return std::max(0.0, (slow - clock_.fast({kernel})).count());
  }

  void find_items() {
    const Graph& graph = request_.graph;
    std::vector<std::uint32_t> writer(graph.tensors.size(), kNever);
    for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) add_from_start({i});
    for (std::uint32_t k = 0; k < uses_.kernels(); ++k) {
      for (const Use& use : uses_.of(k)) {
        if (use.writes) writer[use.tensor.index] = k;
        const auto bytes = static_cast<double>(graph[use.tensor].bytes.count);
        Item now{k, k, bytes};
        now.used_lost = lost(k, use.tensor, true, true);
        items_.push_back(now);
        add_until_next(use, k, writer[use.tensor.index]);
      }
    }
  }

  void add_from_start(TensorId id) {
    const std::uint32_t first = uses_.first(id);
    if (first == kNever || first == 0 || !uses_.first_reads(id)) return;
    const Tensor& tensor = request_.graph[id];
    Item item{0, std::min(first, uses_.kernels()) - 1, static_cast<double>(tensor.bytes.count)};
    // Where inputs are put when they are given is the plan's choice.
    item.read = true;
    item.read_lost = lost(first, id, true, false);
    items_.push_back(item);
  }

  void add_until_next(const Use& use, std::uint32_t kernel, std::uint32_t writer) {
    const Tensor& tensor = request_.graph[use.tensor];
    const bool kept = use.next == kNever && tensor.persistent;
    if (!kept && !(use.next != kNever && use.next_reads)) return;
    const std::uint32_t next = kept ? uses_.kernels() : std::min(use.next, uses_.kernels());
    if (kernel + 1 >= next) return;
    Item item{kernel + 1, next - 1, static_cast<double>(tensor.bytes.count)};
    item.written = writer != kNever;
    item.read = !kept;
    if (item.written) item.write_lost = lost(writer, use.tensor, false, true);
    if (item.read) item.read_lost = lost(use.next, use.tensor, true, false);
    items_.push_back(item);
  }

  double cost(const Item& item, double out_weight, double in_weight) const {
    double sum = item.used_lost;
    if (item.written) sum += out_.least(item.bytes, out_weight, item.write_lost);
    if (item.read) sum += in_.least(item.bytes, in_weight, item.read_lost);
    return sum;
  }

  /// The least cost of being without so many bytes.
  double least_cost(double excess, const std::vector<const Item*>& live, double out_weight,
                    double in_weight) const {
    std::vector<std::pair<double, double>> order;  // cost of a byte, bytes
    for (const Item* item : live) {
      if (item->bytes > 0) order.emplace_back(cost(*item, out_weight, in_weight) / item->bytes, item->bytes);
    }
    std::sort(order.begin(), order.end());
    double sum = 0;
    for (const auto& [each, bytes] : order) {
      sum += each * std::min(bytes, excess);
      excess -= std::min(bytes, excess);
    }
    return sum;
  }

  Seconds seen_from(const Place& place, const std::vector<const Item*>& live) const {
    constexpr double kWeights[] = {0, 0.25, 0.5, 0.75, 1};
    Seconds best{0};
    for (const double out : kWeights) {
      for (const double in : kWeights) {
        const Seconds kernels = (1 - out) * place.before + place.kernel + (1 - in) * place.after;
        best = std::max(best, kernels + Seconds{least_cost(place.excess, live, out, in)});
      }
    }
    return best;
  }

  const PlanRequest& request_;
  StepUses uses_;
  KernelClock clock_;
  Way out_, in_;
  std::vector<Item> items_;
};

}  // namespace terrace::bench

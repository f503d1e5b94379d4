// SPDX-License-Identifier: Apache-2.0
// What no plan can beat: proofs, in the machine's model of itself.
//
// On one engine there are two proofs, and the greater counts: by multipliers (relaxation.hpp), for any
// machine; and, where kernels can use tier 0 alone, by views: while kernel p runs, tier 0 holds its operands,
// and what is needed later and does not fit beside them is in a slower tier. It was written there between the
// step's start and p (unless the slower copy is from the step before) and is read back between p and the
// step's end, so both parts of the step take at least their kernels and at least their transfers. While a
// link is busy kernels lose a share of their speed, and if none runs they lose all: that share of the
// transfers' time is added to the kernels'. What is recomputed instead takes at least its share of the kernel
// that wrote it. Both rest on kernels that run one after the other, and prove nothing where several engines
// run them side by side. There the engines share the work, and a kernel starts when those have ended that
// make what it reads.
#include <algorithm>
#include <numeric>

#include "bounds/ascent.hpp"
#include "bounds/closure_view.hpp"
#include "graph/variant.hpp"
#include "plan/region_size.hpp"
#include "plan/step_uses.hpp"
#include "terrace/bounds.hpp"

namespace terrace {
namespace {

bool may_run_elsewhere(const Machine& machine) {
  return std::any_of(machine.tiers.begin() + 1, machine.tiers.end(),
                     [](const MachineTier& tier) { return tier.addressable; });
}

/// The best that all links in one direction could do together.
struct Way {
  double rate = 0;  ///< bytes per second
  double loss = 1;  ///< share of the kernels' speed that is lost at least while any is busy

  Way(const Machine& machine, bool out) {
    for (const Link& link : machine.links) {
      if ((out ? link.from : link.to) != TierId{0}) continue;
      double fastest = 0;
      for (const SizedRate& sized : link.rates) fastest = std::max(fastest, sized.rate.value);
      rate += fastest;
      loss = std::min(loss, link.compute_loss);
    }
  }
  bounds::Carriage carriage() const { return {1 / rate, loss}; }
  Seconds busy(double bytes) const { return Seconds{std::max(bytes, 0.0) / rate}; }
  /// How long kernels take that take so long alone, while so many bytes are moved beside them.
  Seconds least(Seconds kernels, double bytes) const {
    return std::max(busy(bytes), kernels + loss * busy(bytes));
  }
};

/// A value between two kernels that use it: a tensor's contents over a stretch in which nobody touches them.
struct Span {
  std::uint32_t first, last;  ///< kernels in between
  double bytes;
  bool reads;    ///< it is read after that
  bool written;  ///< it was made within the step
};

class Spans {
 public:
  explicit Spans(const PlanRequest& request) : uses_(request.graph) {
    const Graph& graph = request.graph;
    std::vector<std::uint32_t> writer(graph.tensors.size(), kNever);
    for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) begin(graph, {i});
    for (std::uint32_t k = 0; k <= uses_.kernels(); ++k) {
      for (const Use& use : uses_.of(k)) {
        if (use.writes) writer[use.tensor.index] = k;
        const Tensor& tensor = graph[use.tensor];
        const bool kept = use.next == kNever && tensor.persistent;
        if (!kept && !(use.next != kNever && use.next_reads)) continue;
        const std::uint32_t made = writer[use.tensor.index], next = kept ? uses_.kernels() : use.next;
        const auto bytes = static_cast<double>(tensor.bytes.count);
        add({k + 1, next - 1, bytes, !kept, made != kNever || !tensor.persistent});
      }
    }
  }

  const std::vector<Span>& all() const { return spans_; }

 private:
  /// Adds the time from the step's start to the first use of a tensor that is there from the start.
  void begin(const Graph& graph, TensorId id) {
    const std::uint32_t first = uses_.first(id);
    if (first == kNever || first == 0 || !uses_.first_reads(id)) return;
    const Tensor& tensor = graph[id];
    add({0, first - 1, static_cast<double>(tensor.bytes.count), true, is_given(tensor)});
  }

  void add(Span span) {
    span.last = std::min(span.last, uses_.kernels() - 1);
    if (span.first <= span.last && uses_.kernels() > 0) spans_.push_back(span);
  }

  StepUses uses_;
  std::vector<Span> spans_;
};

/// What is out of tier 0 during each kernel, at least.
struct Excess {
  std::vector<double> out, in;
};

Excess excess(const PlanRequest& request, const Spans& spans) {
  const std::size_t kernels = request.graph.kernels.size();
  Excess excess{std::vector<double>(kernels + 1), std::vector<double>(kernels + 1)};
  for (const Span& span : spans.all()) {
    if (span.written) excess.out[span.first] += span.bytes, excess.out[span.last + 1] -= span.bytes;
    if (span.reads) excess.in[span.first] += span.bytes, excess.in[span.last + 1] -= span.bytes;
  }
  std::partial_sum(excess.out.begin(), excess.out.end(), excess.out.begin());
  std::partial_sum(excess.in.begin(), excess.in.end(), excess.in.begin());
  const StepUses uses(request.graph);
  for (std::uint32_t k = 0; k < kernels; ++k) {
    double room = static_cast<double>(request.budget[0].count);
    for (const Use& use : uses.of(k)) {
      if (is_needed(request.graph.kernels[k], use.tensor))
        room -= static_cast<double>(request.graph[use.tensor].bytes.count);
    }
    excess.out[k] -= room;
    excess.in[k] -= room;
  }
  return excess;
}

/// A step seen from kernel p.
struct View {
  Seconds before, kernel, after;
  double out, in;  ///< bytes

  Seconds least(const Way& to, const Way& from) const {
    return to.least(before, out) + kernel + from.least(after, in);
  }
};

}  // namespace

LeastBudget least_budget(const Graph& graph, const Machine& machine) {
  if (may_run_elsewhere(machine)) return {};
  const auto size = [&](TensorId tensor) { return region_size(graph[tensor], machine.tiers[0]); };
  const StepUses uses(graph);
  // Inputs are filled before the step and have their places again after it, beside the results; a result that
  // is kept from step to step is at hand after every step.
  std::vector<bool> kept(graph.tensors.size());
  LeastBudget least;
  Bytes always{};
  for (const Use& use : uses.of(uses.kernels())) {
    least.bytes += size(use.tensor);
    kept[use.tensor.index] = graph[use.tensor].persistent || graph[use.tensor].kind == TensorKind::input;
    if (kept[use.tensor.index]) always += size(use.tensor);
  }
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    const Tensor& tensor = graph.tensors[i];
    if (is_given(tensor) && !kept[i]) least.bytes += size({i});
  }
  for (std::uint32_t k = 0; k < uses.kernels(); ++k) {
    Bytes bytes = always;
    for (const Use& use : uses.of(k)) {
      if (!kept[use.tensor.index] && is_needed(graph.kernels[k], use.tensor)) bytes += size(use.tensor);
    }
    if (bytes > least.bytes) least = {bytes, {k}};
  }
  return least;
}

namespace {

/// What cannot stay has to cross the links: where no kernel can use slower memory.
void add_views(const PlanRequest& request, const KernelClock& clock, Bound& bound) {
  constexpr std::size_t kLookedAt = 6;  // kernels for which recomputing is considered: any number is valid
  constexpr std::size_t kApart = 40;    // no two of them are closer than this part of the step
  const Way out(request.machine, true), in(request.machine, false);
  if (may_run_elsewhere(request.machine) || out.rate == 0 || in.rate == 0) return;
  const Spans spans(request);
  const Excess missing = excess(request, spans);
  std::vector<std::pair<Seconds, std::uint32_t>> order;
  std::vector<View> views;
  Seconds before{0};
  for (std::uint32_t k = 0; k < request.graph.kernels.size(); ++k) {
    const Seconds kernel = clock.fast({k});
    views.push_back({before, kernel, bound.compute - before - kernel, missing.out[k], missing.in[k]});
    order.emplace_back(views[k].least(out, in), k);
    bound.transfer = std::max(bound.transfer, out.busy(missing.out[k]) + in.busy(missing.in[k]));
    before += kernel;
  }
  std::sort(order.rbegin(), order.rend());
  if (!order.empty()) bound.moving = std::max(bound.moving, order[0].first);
  bounds::ClosureViews closures(request, clock, out.carriage(), in.carriage());
  std::vector<std::uint32_t> looked_at;
  for (const auto& [time, k] : order) {
    if (looked_at.size() == kLookedAt || time <= bound.step) break;
    const auto is_near = [&, k = k](std::uint32_t other) {
      return std::max(k, other) - std::min(k, other) < views.size() / kApart;
    };
    if (std::any_of(looked_at.begin(), looked_at.end(), is_near)) continue;
    looked_at.push_back(k);
    bound.step = std::max(bound.step, Seconds{closures.least(k)});
  }
}

/// Any multipliers prove a bound, so any number of blocks and of steps is valid.
void add_prices(const PlanRequest& request, const KernelClock& clock, Bound& bound) {
  constexpr std::uint64_t kWork = 2'000'000, kLeast = 20, kMost = 300;  // uses of tensors, bounds
  constexpr std::size_t kSmall = 200;                                   // kernels
  constexpr std::uint32_t kManyBlocks = 4 * bounds::kBlocks;
  const bool small = request.graph.kernels.size() <= kSmall;
  const bounds::Problem problem(request, clock, small ? kManyBlocks : bounds::kBlocks);
  const std::uint64_t steps =
      std::clamp(kWork / std::max<std::uint64_t>(problem.uses.size(), 1), kLeast, kMost);
  bounds::Ascent any(problem, bounds::Recompute::yes), once(problem, bounds::Recompute::no);
  any.climb(steps);
  if (steps > kLeast) {
    once.climb(steps / 2);
  } else {
    once.climb_from(any, kLeast / 4);
  }
  bound.step = std::max(bound.step, Seconds{any.bound()});
  bound.moving = std::max({bound.moving, bound.step, Seconds{once.bound()}});
}

/// Bytes of what outlives the step: all of it, what kernels read before they write it, and what they write.
struct Lasting {
  double all = 0, read = 0, written = 0;

  explicit Lasting(const Graph& graph) {
    const StepUses uses(graph);
    std::vector<bool> is_written(graph.tensors.size());
    for (std::uint32_t k = 0; k < uses.kernels(); ++k) {
      for (const Use& use : uses.of(k))
        is_written[use.tensor.index] = is_written[use.tensor.index] || use.writes;
    }
    for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
      if (!graph.tensors[i].persistent) continue;
      const auto bytes = static_cast<double>(graph.tensors[i].bytes.count);
      all += bytes;
      if (uses.first({i}) != kNever && uses.first({i}) < uses.kernels() && uses.first_reads({i}))
        read += bytes;
      if (is_written[i]) written += bytes;
    }
  }
};

/// The rate of all links that begin, or end, in a tier.
double rate_of(const Machine& machine, TierId tier, bool out) {
  double rate = 0;
  for (const Link& link : machine.links) {
    if ((out ? link.from : link.to) != tier) continue;
    double fastest = 0;
    for (const SizedRate& sized : link.rates) fastest = std::max(fastest, sized.rate.value);
    rate += fastest;
  }
  return rate;
}

/// What outlives the step and fits in no other tier is, when the step starts and when it ends, in one that no
/// kernel can use, such as a disk behind the host's memory: what kernels read of it crosses the links out of
/// there, what they change the links back, whatever lies between that tier and tier 0.
void add_unreached_tiers(const PlanRequest& request, Bound& bound) {
  const Lasting lasting(request.graph);
  for (std::uint32_t tier = 1; tier < request.machine.tiers.size(); ++tier) {
    if (request.machine.is_reached({tier})) continue;
    double there = lasting.all;
    for (std::uint32_t other = 0; other < request.machine.tiers.size(); ++other) {
      if (other != tier) there -= static_cast<double>(request.budget[other].count);
    }
    for (const bool out : {true, false}) {
      const double idle = lasting.all - (out ? lasting.read : lasting.written);
      const double rate = rate_of(request.machine, {tier}, out);
      if (there <= idle || rate == 0) continue;
      const Seconds busy{(there - idle) / rate};
      bound.step = std::max(bound.step, busy);
      bound.moving = std::max(bound.moving, busy);
    }
  }
}

/// The longest chain of kernels each of which reads what the one before it makes. A second run of a kernel
/// starts no earlier than its first could, so recomputation shortens no chain.
Seconds longest_chain(const Graph& graph, const KernelClock& clock) {
  std::vector<Seconds> made(graph.tensors.size());  // when a tensor's newest value can be there
  Seconds longest{0};
  for (std::uint32_t k = 0; k < graph.kernels.size(); ++k) {
    Seconds start{0};
    for (const Operand& input : graph.kernels[k].inputs) start = std::max(start, made[input.tensor.index]);
    const Seconds end = start + clock.fastest({k});
    for (const Operand& output : graph.kernels[k].outputs) made[output.tensor.index] = end;
    longest = std::max(longest, end);
  }
  return longest;
}

Bound bound_of_several_engines(const PlanRequest& request, const KernelClock& clock) {
  Seconds work{0};
  for (std::uint32_t k = 0; k < request.graph.kernels.size(); ++k) work += clock.fastest({k});
  const Seconds shared = work / static_cast<double>(request.machine.engine_count());
  const Seconds least = std::max(shared, longest_chain(request.graph, clock));
  return {least, least, least, Seconds{0}};
}

}  // namespace

Bound step_bound(const PlanRequest& request) {
  const KernelClock clock(request.graph, request.machine, request.profile);
  if (request.machine.engine_count() > 1) return bound_of_several_engines(request, clock);
  const Seconds compute = clock.fast_step();
  Bound bound{compute, compute, compute, Seconds{0}};
  add_views(request, clock, bound);
  add_prices(request, clock, bound);
  add_unreached_tiers(request, bound);
  return bound;
}

}  // namespace terrace

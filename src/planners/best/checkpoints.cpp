#include "planners/best/checkpoints.hpp"

#include <algorithm>
#include <deque>
#include <limits>

#include "terrace/lifetimes.hpp"

namespace terrace::best {
namespace {

/// Of fast memory.
constexpr double kSegments[] = {1.0 / 16, 1.0 / 8, 1.0 / 4,
                                1.0 / 2,  1,       std::numeric_limits<double>::infinity()};
/// How many amounts of what is dropped are looked at.
constexpr int kAmounts = 12;

/// All uses of each tensor, in order.
std::vector<std::vector<std::pair<std::uint32_t, Use>>> uses_by_tensor(const Graph& graph,
                                                                       const StepUses& uses) {
  std::vector<std::vector<std::pair<std::uint32_t, Use>>> all(graph.tensors.size());
  for (std::uint32_t k = 0; k <= uses.kernels(); ++k) {
    for (const Use& use : uses.of(k)) all[use.tensor.index].emplace_back(k, use);
  }
  return all;
}

}  // namespace

Checkpoints::Checkpoints(const PlanRequest& request, const StepUses& uses, const KernelClock& clock,
                         const bounds::Problem& problem, const bounds::Prices& prices)
    : problem_(problem), tensors_(request.graph.tensors.size()) {
  find_peak(request);
  if (full_before_.back() == 0) return;
  find_candidates(request, uses);
  price_making(request, clock);
  price_keeping(prices);
}

void Checkpoints::find_peak(const PlanRequest& request) {
  const Lifetimes lifetimes(request.graph);
  full_before_.push_back(0);
  for (const Bytes live : lifetimes.live_bytes()) {
    full_before_.push_back(full_before_.back() + (live > request.budget[0] ? 1 : 0));
  }
  if (full_before_.back() == 0) return;
  peak_ = lifetimes.peak_kernel().index;
  live_ = static_cast<double>(lifetimes.peak_bytes().count);
  for (std::uint32_t k = 0; k < problem_.moments(); ++k) {
    if (request.graph.kernels[k].phase == Phase::forward) forward_ += problem_.kernels[k].fast;
  }
}

/// What forward kernels alone write. Over the longest of its gaps; what has none is not needed backward.
void Checkpoints::find_candidates(const PlanRequest& request, const StepUses& uses) {
  const Graph& graph = request.graph;
  const auto all = uses_by_tensor(graph, uses);
  for (std::uint32_t i = 0; i < tensors_; ++i) {
    const Tensor& tensor = graph.tensors[i];
    if (tensor.persistent || is_given(tensor) || tensor.kind == TensorKind::workspace || all[i].empty())
      continue;
    Candidate candidate{{i}, {}, all[i].front().first, static_cast<double>(tensor.bytes.count)};
    std::uint32_t longest = 0;
    bool forward = tensor.bytes.count > 0;
    for (std::size_t u = 0; u < all[i].size() && forward; ++u) {
      const auto& [kernel, use] = all[i][u];
      if (kernel == uses.kernels() || (use.writes && graph.kernels[kernel].phase != Phase::forward))
        forward = false;
      if (use.next == kNever || !use.next_reads || use.next == uses.kernels()) continue;
      const std::uint32_t full = full_before_[use.next] - full_before_[kernel + 1];
      if (full <= longest) continue;
      longest = full;
      candidate.gap = {kernel, use.next};
    }
    if (!forward) continue;
    if (longest == 0) candidate.gap.after = all[i].back().first;
    candidates_.push_back(candidate);
  }
  std::stable_sort(candidates_.begin(), candidates_.end(),
                   [](const Candidate& a, const Candidate& b) { return a.made < b.made; });
  double saved = 0, at_peak = 0;
  for (const Candidate& candidate : candidates_) {
    if (!candidate.is_saved()) continue;
    saved += candidate.bytes;
    if (candidate.is_dropped_at(peak_)) at_peak += candidate.bytes;
  }
  if (at_peak > 0) passes_ = saved / at_peak;
}

/// A kernel's time counts for its largest output. What is not needed backward is made for what is.
void Checkpoints::price_making(const PlanRequest& request, const KernelClock& clock) {
  const Graph& graph = request.graph;
  std::vector<Candidate*> of(tensors_);
  for (Candidate& candidate : candidates_) of[candidate.tensor.index] = &candidate;
  for (std::uint32_t k = 0; k < graph.kernels.size(); ++k) {
    Candidate* largest = nullptr;
    for (const Operand& output : graph.kernels[k].outputs) {
      Candidate* made = of[output.tensor.index];
      if (made != nullptr && (largest == nullptr || made->bytes > largest->bytes)) largest = made;
    }
    if (largest == nullptr) continue;
    largest->making += clock.fast({k}).count();
    for (const Operand& input : graph.kernels[k].inputs) {
      const Candidate* from = of[input.tensor.index];
      if (from != nullptr && from != largest && !from->is_saved()) largest->making += from->making;
    }
    largest->making = std::min(largest->making, problem_.compute);
  }
}

/// What its cheapest path costs beside the memory that its kernels need anyway.
void Checkpoints::price_keeping(const bounds::Prices& prices) {
  std::vector<std::uint32_t> number(tensors_, kNever);
  for (std::uint32_t t = 0; t < problem_.tensors.size(); ++t) number[problem_.tensors[t].id.index] = t;
  const bounds::Priced priced(problem_, prices);
  bounds::Paths paths(problem_);
  for (Candidate& candidate : candidates_) {
    if (number[candidate.tensor.index] == kNever) continue;
    const bounds::BoundTensor& tensor = problem_.tensors[number[candidate.tensor.index]];
    candidate.keeping = paths.cheapest(tensor, prices, priced, bounds::Again::no).price;
    for (std::uint32_t u = tensor.uses; u < tensor.uses_end; ++u) {
      const std::uint32_t kernel = problem_.uses[u].kernel;
      candidate.keeping -= tensor.bytes * priced.hold(kernel, std::min(kernel + 1, problem_.moments()));
    }
  }
}

/// So that about equal amounts of bytes are dropped more from each to the next.
std::vector<double> Checkpoints::thresholds() const {
  std::vector<const Candidate*> order;
  double all = 0, bytes = 0;
  for (const Candidate& candidate : candidates_) {
    if (!candidate.is_saved() || candidate.keeping <= 0) continue;
    order.push_back(&candidate);
    all += candidate.bytes;
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Candidate* a, const Candidate* b) { return a->price() < b->price(); });
  std::vector<double> found;
  for (const Candidate* candidate : order) {
    bytes += candidate->bytes;
    if (bytes * kAmounts < all * static_cast<double>(found.size() + 1)) continue;
    found.push_back(candidate->price());
  }
  return found;
}

/// By kernel: whether a segment begins there. The least bytes that are used beyond cuts.
std::vector<bool> Checkpoints::cuts(const Choice& choice) const {
  const std::uint32_t end = candidates_.empty() ? 0 : candidates_.back().made + 1;
  std::vector<double> made(end + 1), beyond(end + 1), cost(end + 1);
  for (const Candidate& candidate : candidates_) {
    if (candidate.is_saved() && candidate.price() > choice.dearest) continue;
    if (candidate.is_saved()) made[candidate.made + 1] += candidate.bytes;
    beyond[candidate.made + 1] += candidate.bytes;
    if (candidate.gap.after < end) beyond[candidate.gap.after + 1] -= candidate.bytes;
  }
  for (std::uint32_t k = 1; k <= end; ++k) made[k] += made[k - 1], beyond[k] += beyond[k - 1];
  std::vector<std::uint32_t> before(end + 1);
  std::deque<std::uint32_t> cheapest;  // cuts that a segment could begin with, ascending, as are their costs
  for (std::uint32_t k = 1; k <= end; ++k) {
    while (!cheapest.empty() && cost[cheapest.back()] >= cost[k - 1]) cheapest.pop_back();
    cheapest.push_back(k - 1);
    while (cheapest.size() > 1 && made[k] - made[cheapest.front()] > choice.segment) cheapest.pop_front();
    before[k] = cheapest.front();
    cost[k] = cost[before[k]] + (k < end ? beyond[k] : 0);
  }
  std::vector<bool> cut(end + 1);
  for (std::uint32_t k = end; k > 0; k = before[k]) cut[before[k]] = true;
  return cut;
}

/// What is dropped: no checkpoints, nor what the last of several segments makes, which is needed at once.
std::vector<const Checkpoints::Candidate*> Checkpoints::within(const Choice& choice) const {
  const std::vector<bool> cut = cuts(choice);
  std::vector<std::uint32_t> cuts_before{0};
  for (const bool one : cut) cuts_before.push_back(cuts_before.back() + (one ? 1 : 0));
  std::vector<const Candidate*> dropped;
  for (const Candidate& candidate : candidates_) {
    if (candidate.is_saved() && candidate.price() > choice.dearest) continue;
    const auto last = std::min<std::size_t>(candidate.gap.after, cut.size() - 1);
    const std::uint32_t cuts = cuts_before[candidate.made + 1];
    if (cuts_before[last + 1] > cuts || (cuts > 1 && cuts == cuts_before.back())) continue;
    dropped.push_back(&candidate);
  }
  return dropped;
}

/// What does not fit leaves while forward kernels run and comes back while the others do.
double Checkpoints::estimate(const Choice& choice) const {
  double bytes = 0, making = 0;
  for (const Candidate* candidate : within(choice)) {
    if (!candidate->is_saved()) continue;
    making += candidate->making;
    if (candidate->is_dropped_at(peak_)) bytes += candidate->bytes;
  }
  const double segment = std::min(choice.segment, problem_.capacity / 2);
  const double over = passes_ * std::max(0.0, live_ - bytes + segment - problem_.capacity);
  const bounds::Direction &out = problem_.out, &in = problem_.in;
  const double forward = forward_ + over * out.cost,
               backward = problem_.compute - forward_ + making + over * in.cost;
  return std::max(forward, over * out.busy) + std::max(backward, over * in.busy);
}

/// For each size of segments, what seems best and a little more and less than that.
std::vector<Checkpoints::Choice> Checkpoints::choices() const {
  std::vector<Choice> choices;
  const std::vector<double> dearest = thresholds();
  for (const double share : kSegments) {
    std::vector<Choice> all;
    std::size_t best = 0;
    for (const double price : dearest) {
      all.push_back({share * problem_.capacity, price});
      all.back().step = estimate(all.back());
      if (all.back().step < all[best].step) best = all.size() - 1;
    }
    for (std::size_t i = best > 0 ? best - 1 : 0; i < std::min(best + 2, all.size()); ++i)
      choices.push_back(all[i]);
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& a, const Choice& b) { return a.step < b.step; });
  return choices;
}

std::vector<Dropped> Checkpoints::dropped(const Choice& choice) const {
  std::vector<Dropped> dropped(tensors_);
  for (const Candidate* candidate : within(choice)) dropped[candidate->tensor.index] = candidate->gap;
  return dropped;
}

}  // namespace terrace::best
